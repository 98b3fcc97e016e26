import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowExecutionDescription,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import type { EventIdHash } from '../crypto/installation-secret.ts';
import type { EventType } from '../event-type.ts';
import type { Logger } from '../logger.ts';
import { type Loop, startLoop } from '../loop.ts';
import type { Database, Transaction } from '../postgres/database.ts';
import { execute, query } from '../postgres/sql.ts';
import { searchAttributes } from './workflow-options.ts';

export type WorkflowStarterTools = {
  database: Database;
  client: Client;
  taskQueue: string;
  logger: Logger;
  eventIdHash: EventIdHash;
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
  { client, taskQueue, logger, eventIdHash }: WorkflowStarterTools,
  task: TakenTask,
): Promise<void> {
  const { workflowId, workflowType, wabaId, tenantId } = task;
  const eventType = EVENT_TYPES[workflowType] ?? null;
  const eventId = eventType === null ? task.eventId : await eventIdHash(task.eventId);
  const options = {
    taskQueue,
    workflowId,
    workflowIdReusePolicy: 'ALLOW_DUPLICATE' as const,
    args: [task.argument],
    typedSearchAttributes: searchAttributes({ tenantId, wabaId: wabaId || null, eventId, eventType }),
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
  sendEndpointAlert: 'tell a tenant at its operations URL',
  sendMail: 'send an e-mail',
  replayDeliveries: 'send deliveries again',
  sendMessage: 'send a message to a customer',
  approveApiKey: 'a request for an API key',
  refreshNumbers: 'the phone numbers of a WABA',
  eraseCustomer: 'erase a customer',
  eraseConversation: 'erase a conversation',
  eraseWaba: 'erase a WABA',
  eraseTenant: 'erase a tenant',
  eraseUser: 'erase a user',
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

type EraseWorkflow = 'eraseCustomer' | 'eraseConversation' | 'eraseWaba' | 'eraseTenant' | 'eraseUser';

/** A workflow that must run to its end: the row stands until the workflow's last activity deletes it. */
type WorkflowTask = {
  workflowId: string;
  workflowType:
    | 'storeInboundMedia'
    | 'enrichOrder'
    | 'sendEndpointAlert'
    | 'sendMail'
    | 'replayDeliveries'
    | 'sendMessage'
    | 'approveApiKey'
    | 'refreshNumbers'
    | EraseWorkflow;
  /** Empty: it is about no WABA. */
  wabaId: string;
  /** The eventId of what the workflow publishes, by whose hash operators find it; an id of ours if it publishes nothing. */
  eventId: string;
  /** Ids only: what the workflow works on is in the database. */
  argument: Record<string, string>;
  /** What an operator reads in the Temporal UI, up to 400 bytes; by the type of the workflow unless given. */
  summary?: string | null;
};

/** `starts`: how often it was taken since it was added or woken, this time included. */
type TakenTask = WorkflowTask & { starts: number; tenantId: string | null };

/**
 * Adds tasks and wakes the starter when the transaction commits. With `startWithinMs` the caller starts the workflows
 * itself, and the starter does so only if they are not done by then.
 */
export async function insertWorkflowTasks(
  trx: Transaction,
  tasks: readonly WorkflowTask[],
  startWithinMs = 0,
): Promise<void> {
  if (tasks.length === 0) return;
  await execute(
    trx,
    `insert into workflow_tasks (workflow_id, workflow_type, waba_id, event_id, argument, summary, next_start_at)
     select *, now() + ? * interval '1 millisecond'
       from unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::jsonb[], ?::text[]) on conflict do nothing`,
    [
      startWithinMs,
      tasks.map((task) => task.workflowId),
      tasks.map((task) => task.workflowType),
      tasks.map((task) => task.wabaId),
      tasks.map((task) => task.eventId),
      tasks.map((task) => JSON.stringify(task.argument)),
      tasks.map((task) => task.summary ?? null),
    ],
  );
  if (startWithinMs === 0) trx.notify('heliograph_workflow_tasks');
}

/** Makes a task due at once, when the transaction commits, because what its workflow works on has changed. */
export async function wakeTask(trx: Transaction, workflowId: string): Promise<void> {
  await execute(trx, 'update workflow_tasks set starts = 0, next_start_at = now() where workflow_id = ?', [
    workflowId,
  ]);
  trx.notify('heliograph_workflow_tasks');
}

/** Makes all tasks due at once: Temporal has lost their workflows. */
export async function wakeAllTasks(database: Database): Promise<void> {
  await execute(database, 'update workflow_tasks set starts = 0, next_start_at = now()');
  database.notify('heliograph_workflow_tasks');
}

/**
 * A page of the tasks whose workflow may have been started, by the ids of their workflows: those that were taken before,
 * and sends, which the API starts without taking them.
 */
export async function listStartedTasks(
  database: Database,
  after: string,
  limit: number,
): Promise<Pick<TakenTask, 'workflowId' | 'workflowType' | 'argument' | 'starts'>[]> {
  return await query(
    database,
    `select workflow_id as "workflowId", workflow_type as "workflowType", argument, starts from workflow_tasks
      where workflow_id > ? and (starts > 0 or workflow_type = 'sendMessage') order by workflow_id limit ?`,
    [after, limit],
  );
}

/** Those of these workflows whose task stands. */
export async function findTasks(database: Database, workflowIds: readonly string[]): Promise<Set<string>> {
  const rows = await query<{ id: string }>(
    database,
    'select workflow_id as id from workflow_tasks where workflow_id = any (?::text[])',
    [workflowIds],
  );
  return new Set(rows.map(({ id }) => id));
}

/** The types of the workflows that a task stands for. */
export const TASK_TYPES: readonly string[] = Object.keys(SUMMARIES);

const RESTART_AFTER_MS = 60_000;

/**
 * Takes tasks whose time has come. Each comes up again after a growing wait (1 to 64 minutes) as long as its row
 * stands; starting a workflow that already runs changes nothing, so a lost start costs only that wait. An order's is
 * always a minute: later orders of its catalog wait behind it.
 */
async function takeDueTasks(database: Database, limit: number): Promise<TakenTask[]> {
  return await query<TakenTask>(
    database,
    `update workflow_tasks
        set starts = starts + 1,
            next_start_at = now() + ? * power(2, case workflow_type when 'enrichOrder' then 0 else least(starts, 6) end) * interval '1 millisecond'
      where workflow_id in (select workflow_id from workflow_tasks where next_start_at <= now()
                             order by next_start_at limit ? for update skip locked)
     returning workflow_id as "workflowId", workflow_type as "workflowType", waba_id as "wabaId",
               event_id as "eventId", argument, summary, starts,
               (select tenant_id from wabas where waba_id = workflow_tasks.waba_id) as "tenantId"`,
    [RESTART_AFTER_MS, limit],
  );
}

/** Makes tasks due again at once, because their workflow could not be started. */
export async function returnTasks(database: Database, workflowIds: readonly string[]): Promise<void> {
  await execute(
    database,
    `update workflow_tasks set starts = greatest(starts - 1, 0), next_start_at = now()
      where workflow_id = any (?::text[])`,
    [workflowIds],
  );
}

/** Ends a task, in the transaction that holds the workflow's result. */
export async function finishTask(trx: Transaction, workflowId: string): Promise<void> {
  await execute(trx, 'delete from workflow_tasks where workflow_id = ?', [workflowId]);
}

/** Up to `limit` workflows of the tasks of a WABA, without the types that are like one of these. */
export async function listTasksOfWaba(
  database: Database,
  wabaId: string,
  exceptTypes: readonly string[],
  limit: number,
): Promise<string[]> {
  const rows = await query<{ id: string }>(
    database,
    `select workflow_id as id from workflow_tasks
      where waba_id = ? and workflow_type not like all (?::text[]) limit ?`,
    [wabaId, exceptTypes, limit],
  );
  return rows.map(({ id }) => id);
}

/** Deletes tasks of work that is gone. */
export async function deleteTasks(trx: Transaction, workflowIds: readonly string[]): Promise<void> {
  await execute(trx, 'delete from workflow_tasks where workflow_id = any (?::text[])', [workflowIds]);
}

/** As `finishTask`, unless the same work was asked for again since the workflow was last started. */
export async function finishAskedTask(trx: Transaction, workflowId: string): Promise<void> {
  await execute(trx, 'delete from workflow_tasks where workflow_id = ? and starts > 0', [workflowId]);
}
