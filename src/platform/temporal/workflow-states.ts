import { setTimeout } from 'node:timers/promises';
import type { Client } from '@temporalio/client';

/** `completed`: it returned a result; `ended`: it was terminated, cancelled, failed or timed out; `none`: Temporal has none. */
export type WorkflowState = 'running' | 'completed' | 'ended' | 'none';

const AT_ONCE = 20;

/** Temporal responds within milliseconds; its client goes on trying for much longer than a loop should wait. */
const CALL_WITHIN_MS = 10_000;

/** Calls Temporal for some seconds at most. A loop tries again, and a call that succeeds later does no harm. */
export async function inTime<Result>(
  client: Pick<Client, 'withDeadline'>,
  call: () => Promise<Result>,
): Promise<Result> {
  return await client.withDeadline(Date.now() + CALL_WITHIN_MS, call);
}

export async function readWorkflowStates(
  client: Client,
  workflowIds: readonly string[],
): Promise<Map<string, WorkflowState>> {
  const states = new Map<string, WorkflowState>();
  for (let first = 0; first < workflowIds.length; first += AT_ONCE) {
    const group = workflowIds.slice(first, first + AT_ONCE);
    await Promise.all(group.map(async (id) => states.set(id, await readState(client, id))));
  }
  return states;
}

const LASTING_LOOK_MS = 250;

/** Those of the runs that do not end within so many milliseconds. */
export async function findLasting<Run extends { workflowId: string }>(
  client: Client,
  runs: readonly Run[],
  ms: number,
): Promise<readonly Run[]> {
  const untilMs = performance.now() + ms;
  for (let running = runs; ; await setTimeout(LASTING_LOOK_MS)) {
    const ids = running.map(({ workflowId }) => workflowId);
    const states = await readWorkflowStates(client, ids);
    running = running.filter(({ workflowId }) => states.get(workflowId) === 'running');
    if (running.length === 0 || performance.now() >= untilMs) return running;
  }
}

async function readState(client: Client, workflowId: string): Promise<WorkflowState> {
  const run = await ifOpen(client.workflow.getHandle(workflowId).describe());
  return run === null ? 'none' : stateOf(run.status.name);
}

function stateOf(status: string): WorkflowState {
  if (status === 'RUNNING') return 'running';
  return status === 'COMPLETED' ? 'completed' : 'ended';
}

/** What a call on a run returns; null: Temporal has no such run, or it has ended. */
export async function ifOpen<Result>(call: Promise<Result>): Promise<Result | null> {
  try {
    return await call;
  } catch (error) {
    // By its name, as in `startOnce`.
    if (error instanceof Error && error.name === 'WorkflowNotFoundError') return null;
    throw error;
  }
}

export type ListedWorkflow = {
  workflowId: string;
  runId: string;
  type: string;
  taskQueue: string;
  startedAt: Date;
  closedAt: Date | null;
  state: WorkflowState;
  memo: Readonly<Record<string, unknown>>;
};

/** The workflows that a query finds, in groups; each page comes in time, or it rejects. */
export async function* listWorkflows(
  client: Client,
  query: string,
  groupSize: number,
): AsyncGenerator<ListedWorkflow[]> {
  let group: ListedWorkflow[] = [];
  const runs = client.workflow.list({ query })[Symbol.asyncIterator]();
  const next = () => inTime(client, () => runs.next());
  for (let run = await next(); run.done !== true; run = await next()) {
    const { workflowId, runId, type, taskQueue, startTime, closeTime, status, memo = {} } = run.value;
    const times = { startedAt: startTime, closedAt: closeTime ?? null };
    group.push({ workflowId, runId, type, taskQueue, ...times, state: stateOf(status.name), memo });
    if (group.length < groupSize) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

export async function readWorkflowResult(client: Client, workflowId: string): Promise<unknown> {
  return await client.workflow.getHandle(workflowId).result();
}

/** PENDING_ACTIVITY_STATE_STARTED */
const STARTED = 2;

/**
 * Whether a run carries an activity out, or did until its worker vanished, or has a result of one that no worker took. An activity that waits to
 * be tried again is none of these.
 */
export async function hasCarriedOut(client: Client, workflowId: string): Promise<boolean> {
  const handle = client.workflow.getHandle(workflowId);
  const run = await ifOpen(handle.describe());
  const pending = run?.raw.pendingActivities ?? [];
  if (pending.length > 0)
    return pending.some(
      ({ state, lastFailure }) => state === STARTED || lastFailure?.timeoutFailureInfo != null,
    );
  const { events } = await handle.fetchHistory();
  return (events ?? []).some(({ activityTaskCompletedEventAttributes: ended }) => ended != null);
}

/** Terminates a run; false: it has ended meanwhile. */
export async function terminateRun(
  client: Client,
  { workflowId, runId }: Pick<ListedWorkflow, 'workflowId' | 'runId'>,
  reason: string,
): Promise<boolean> {
  return (await ifOpen(client.workflow.getHandle(workflowId, runId).terminate(reason))) !== null;
}
