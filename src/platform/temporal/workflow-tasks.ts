import type { Database, Transaction } from '../postgres/database.ts';
import { execute, query } from '../postgres/sql.ts';

/** A workflow that must run to its end: the row stands until the workflow's last activity deletes it. */
export type WorkflowTask = {
  workflowId: string;
  workflowType:
    | 'storeInboundMedia'
    | 'enrichOrder'
    | 'sendEndpointAlert'
    | 'replayDeliveries'
    | 'sendMessage'
    | 'approveApiKey'
    | 'refreshNumbers';
  wabaId: string;
  /** The eventId of what the workflow publishes, by which operators find it. */
  eventId: string;
  /** Ids only: what the workflow works on is in the database. */
  argument: Record<string, string>;
  /** What an operator reads in the Temporal UI, up to 400 bytes; by the type of the workflow unless given. */
  summary?: string | null;
};

/** `starts`: how often it was taken since it was added or woken, this time included. */
export type TakenTask = WorkflowTask & { starts: number; tenantId: string | null };

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

const RESTART_AFTER_MS = 60_000;

/**
 * Takes tasks whose time has come. Each comes up again after a growing wait (1 to 64 minutes) as long as its row
 * stands; starting a workflow that already runs changes nothing, so a lost start costs only that wait. An order's is
 * always a minute: later orders of its catalog wait behind it.
 */
export async function takeDueTasks(database: Database, limit: number): Promise<TakenTask[]> {
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

/** As `finishTask`, unless the same work was asked for again since the workflow was last started. */
export async function finishAskedTask(trx: Transaction, workflowId: string): Promise<void> {
  await execute(trx, 'delete from workflow_tasks where workflow_id = ? and starts > 0', [workflowId]);
}
