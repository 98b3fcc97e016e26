import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowExecutionDescription,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import type { EventType } from '../event-type.ts';
import type { Logger } from '../logger.ts';
import { type Loop, startLoop } from '../loop.ts';
import type { Database } from '../postgres/database.ts';
import { searchAttributes } from './search-attributes.ts';
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

/** A healthy worker takes a task within seconds; one that fails on every replay is never done with it. */
const STUCK_AFTER_MS = 10 * 60_000;

/** A pause is an operator's; one that was forgotten must not keep what waits for the workflow for ever. */
const LONGEST_PAUSE_MS = 60 * 60_000;

/** `running`: an earlier run has not ended and can go on. `replaced`: it could not, so it was terminated. */
export type StartAnswer = 'started' | 'running' | 'replaced';

type StartOrReplace = {
  client: Client;
  logger: Logger;
  /** What to start, on the task queue that its workers poll. */
  workflowType: string;
  options: WorkflowStartOptions;
  /** Beside what Temporal says of a run: what it works on has waited for so long that it must have got stuck. */
  overdueMs?: number;
};

/**
 * Starts a workflow unless a run of it is open. One that cannot go on is terminated and started anew, which is safe
 * where the database says what is still to be done: it has no worker any more, or its code fails on its own history.
 */
export async function startOrReplace(start: StartOrReplace): Promise<StartAnswer> {
  const { client, logger, workflowType, options } = start;
  try {
    await client.workflow.start(workflowType, options);
    return 'started';
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
  const reason = await whyStuck(start);
  if (reason === null) return 'running';
  const { workflowId } = options;
  logger.warn({ workflowId, reason }, 'a workflow that could not go on is terminated and started anew');
  await client.workflow.start(workflowType, { ...options, workflowIdConflictPolicy: 'TERMINATE_EXISTING' });
  return 'replaced';
}

async function whyStuck({ client, options, overdueMs = 0 }: StartOrReplace): Promise<string | null> {
  try {
    const run = await client.workflow.getHandle(options.workflowId).describe();
    if (overdueMs > STUCK_AFTER_MS && Date.now() - run.startTime.getTime() > STUCK_AFTER_MS) {
      return `what it works on is overdue by ${Math.round(overdueMs / 60_000)} min`;
    }
    return stuckReason(run, options.taskQueue, Date.now());
  } catch (error) {
    // It has ended since: the next start finds its id free.
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/** Why a run cannot go on, by what Temporal says of it; null when it can, however long its activities take. */
export function stuckReason(
  run: Pick<WorkflowExecutionDescription, 'taskQueue' | 'raw'>,
  taskQueue: string,
  nowMs: number,
): string | null {
  if (run.taskQueue !== taskQueue)
    return `it is on the task queue ${run.taskQueue}, which is not polled here`;
  const { pendingWorkflowTask, pendingActivities } = run.raw;
  const scheduled = pendingWorkflowTask?.originalScheduledTime ?? pendingWorkflowTask?.scheduledTime;
  if (isOlder(scheduled, STUCK_AFTER_MS, nowMs)) return 'no worker could carry its workflow task out';
  const isForgotten = (pendingActivities ?? []).some(({ pauseInfo }) =>
    isOlder(pauseInfo?.pauseTime, LONGEST_PAUSE_MS, nowMs),
  );
  return isForgotten ? 'an activity of it was paused and not continued' : null;
}

type Timestamp = { seconds?: { toString(): string } | null };

function isOlder(time: Timestamp | null | undefined, ageMs: number, nowMs: number): boolean {
  if (time === null || time === undefined) return false;
  return nowMs - Number(time.seconds ?? 0) * 1_000 > ageMs;
}
