import type { Client, WorkflowExecutionDescription, WorkflowStartOptions } from '@temporalio/client';
import type { Logger } from '../logger.ts';
import { ifOpen } from './workflow-states.ts';

/** A healthy worker takes a task within seconds; one that fails on every replay is never done with it. */
const STUCK_AFTER_MS = 10 * 60_000;

/** A pause is an operator's; one that was forgotten must not keep what waits for the workflow for ever. */
const LONGEST_PAUSE_MS = 60 * 60_000;

/** A request waits for a start no longer. */
export const START_WITHIN_MS = 3_000;

/** In the memo of a run: when it was to start. A run with another time than its task is replaced. */
export const STARTS_AT = 'startsAt';

export type WorkflowStart = { workflowType: string; options: WorkflowStartOptions };

type StartOrReplace = WorkflowStart & { client: Client; logger: Logger };

/**
 * Starts a workflow. `running`: a run of it is open, or the reuse policy of the start keeps an ended one. Rejects while
 * Temporal is away, and when it refuses.
 */
export async function startOnce(
  client: Client,
  { workflowType, options }: WorkflowStart,
): Promise<'started' | 'running'> {
  try {
    await client.workflow.start(workflowType, options);
    return 'started';
  } catch (error) {
    // By its name: the API loads the client when it first needs it, and reads this file before.
    if (error instanceof Error && error.name === 'WorkflowExecutionAlreadyStartedError') return 'running';
    throw error;
  }
}

/**
 * Starts a workflow unless a run of it is open. One that cannot go on is terminated and started again, which is safe
 * where the database says what is still to be done: it has no worker any more, or its code fails on its own history.
 */
export async function startOrReplace(start: StartOrReplace): Promise<'started' | 'running' | 'replaced'> {
  const { client, logger, workflowType, options } = start;
  if ((await startOnce(client, start)) === 'started') return 'started';
  const reason = await whyStuck(start);
  if (reason === null) return 'running';
  const { workflowId } = options;
  logger.warn({ workflowId, reason }, 'a stuck workflow is terminated and started again');
  await client.workflow.start(workflowType, { ...options, workflowIdConflictPolicy: 'TERMINATE_EXISTING' });
  return 'replaced';
}

async function whyStuck({ client, options }: StartOrReplace): Promise<string | null> {
  const run = await ifOpen(client.workflow.getHandle(options.workflowId).describe());
  // It has ended since: the next start finds its id free.
  if (run === null) return null;
  if (run.memo?.[STARTS_AT] !== options.memo?.[STARTS_AT]) return 'it waits for another time than its task';
  return stuckReason(run, options.taskQueue, Date.now());
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
