import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowExecutionDescription,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import type { Logger } from '../logger.ts';

/** A healthy worker takes a task within seconds; one that fails on every replay is never done with it. */
const STUCK_AFTER_MS = 10 * 60_000;

/** A pause is an operator's; one that was forgotten must not keep what waits for the workflow for ever. */
const LONGEST_PAUSE_MS = 60 * 60_000;

/** `running`: an earlier run has not ended and can go on. `replaced`: it could not, so it was terminated. */
export type StartAnswer = 'started' | 'running' | 'replaced';

type StartOrReplace = {
  client: Client;
  logger: Logger;
  workflowType: string;
  options: WorkflowStartOptions;
};

/**
 * Starts a workflow unless a run of it is open. One that cannot go on is terminated and started again, which is safe
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
  logger.warn({ workflowId, reason }, 'a stuck workflow is terminated and started again');
  await client.workflow.start(workflowType, { ...options, workflowIdConflictPolicy: 'TERMINATE_EXISTING' });
  return 'replaced';
}

async function whyStuck({ client, options }: StartOrReplace): Promise<string | null> {
  try {
    const run = await client.workflow.getHandle(options.workflowId).describe();
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
