import { type Client, WorkflowIdConflictPolicy, WorkflowIdReusePolicy } from '@temporalio/client';
import type { Database } from '../database/database.ts';
import { returnTasks, type TakenTask, takeDueTasks } from '../database/workflow-tasks.ts';
import { searchAttributes } from '../workflows/search-attributes.ts';
import type { Logger } from './logger.ts';
import { type Loop, startLoop } from './loop.ts';

export type WorkflowStarterTools = {
  database: Database;
  client: Client;
  taskQueue: string;
  logger: Logger;
};

const BATCH = 50;
const POLL_MS = 250;

/** Starts the workflows that intake and API asked for (media, orders, sends, replays, approvals), and again those whose task still stands later. */
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

async function startTask({ client, taskQueue }: WorkflowStarterTools, task: TakenTask): Promise<void> {
  const options = {
    taskQueue,
    workflowId: task.workflowId,
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
    workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
    args: [task.argument],
    typedSearchAttributes: searchAttributes({ wabaId: task.wabaId, eventId: task.eventId }),
    staticSummary: task.summary ?? SUMMARIES[task.workflowType],
  };
  if (task.workflowType === 'approveApiKey' && task.starts <= SIGNALLED_STARTS) {
    await client.workflow.signalWithStart(task.workflowType, { ...options, signal: 'changed' });
  } else await client.workflow.start(task.workflowType, { ...options, requestEagerStart: true });
}

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
};
