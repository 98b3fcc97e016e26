import type { Client } from '@temporalio/client';
import type { EventType } from '../event-type.ts';
import type { Logger } from '../logger.ts';
import { type Loop, startLoop } from '../loop.ts';
import type { Database } from '../postgres/database.ts';
import { searchAttributes } from './search-attributes.ts';
import { startOrReplace } from './start-or-replace.ts';
import { returnTasks, type TakenTask, takeDueTasks } from './workflow-tasks.ts';

export type WorkflowStarterTools = {
  database: Database;
  client: Client;
  taskQueue: string;
  logger: Logger;
};

const BATCH = 50;
const POLL_MS = 250;

/**
 * Starts the workflows that intake and API asked for (media, orders, sends, replays, approvals, numbers), and again
 * later those whose task still stands; a run that cannot go on is replaced.
 */
export function startWorkflowStarter(tools: WorkflowStarterTools): Loop {
  return startLoop({
    name: 'workflow-starter',
    pollMs: POLL_MS,
    logger: tools.logger,
    turn: async () => {
      const tasks = await takeDueTasks(tools.database, BATCH);
      const starts = await Promise.allSettled(tasks.map((task) => startTask(tools, task)));
      const failed = tasks.filter((_, index) => starts[index]?.status === 'rejected');
      if (failed.length > 0)
        await returnTasks(
          tools.database,
          failed.map((task) => task.workflowId),
        );
      const failure = starts.find((start) => start.status === 'rejected');
      if (failure !== undefined) throw failure.reason;
      return tasks.length === BATCH;
    },
  });
}

async function startTask(
  { client, taskQueue, logger }: WorkflowStarterTools,
  task: TakenTask,
): Promise<void> {
  const { workflowId, workflowType, wabaId, tenantId, eventId } = task;
  const eventType = EVENT_TYPES[workflowType] ?? null;
  const options = {
    taskQueue,
    workflowId,
    workflowIdReusePolicy: 'ALLOW_DUPLICATE' as const,
    args: [task.argument],
    typedSearchAttributes: searchAttributes({ tenantId, wabaId, eventId, eventType }),
    staticSummary: task.summary ?? SUMMARIES[workflowType],
  };
  if (SIGNALLED.has(workflowType) && task.starts <= SIGNALLED_STARTS) {
    const existing = { workflowIdConflictPolicy: 'USE_EXISTING' as const, signal: 'changed' };
    await client.workflow.signalWithStart(workflowType, { ...options, ...existing });
  } else {
    await startOrReplace({ client, logger, workflowType, options: { ...options, requestEagerStart: true } });
  }
}

/** Workflows that wait for what they work on to change. */
const SIGNALLED: ReadonlySet<TakenTask['workflowType']> = new Set(['approveApiKey', 'refreshNumbers']);

/**
 * How often a workflow that waits for its row to change is told so after the task was woken. The first time is enough
 * unless this process dies in between; later ones would only fill its history.
 */
const SIGNALLED_STARTS = 2;

const SUMMARIES = {
  storeInboundMedia: 'fetch inbound media into the object store',
  enrichOrder: 'look up the products of an order',
  sendEndpointAlert: 'tell a tenant about its webhook endpoint',
  replayDeliveries: 'send deliveries again',
  sendMessage: 'send a message to a customer',
  approveApiKey: 'a request for an API key',
  refreshNumbers: 'the phone numbers of a WABA',
};

/** The event that a workflow publishes in the end, for the search attribute. */
const EVENT_TYPES: Partial<Record<TakenTask['workflowType'], EventType>> = {
  storeInboundMedia: 'media.ready',
  enrichOrder: 'order',
};
