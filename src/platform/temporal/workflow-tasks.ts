import type { EventType } from '../event-type.ts';
import type { Database, Transaction } from '../postgres/database.ts';
import { type Bindings, execute, query, queryColumn } from '../postgres/sql.ts';
import { SOON } from '../work-watch.ts';

/** One type of workflow that must run to its end, as its room describes it. `src/worker/task-kinds.ts` lists all. */
export type TaskKind = {
  /** The name that `src/workflows` exports it under. */
  workflowType: string;
  summary: string;
  /** The event that it publishes in the end, for the search attribute. */
  eventType?: EventType;
  /** It waits for its row to change, and a woken task signals that it did. */
  isSignalled?: boolean;
  /** Its start is repeated every minute, not after growing waits, because others wait behind it. */
  isRestartedEveryMinute?: boolean;
  /** Its room starts it without taking the task; the starter does so when that failed. */
  isStartedByItsRoom?: boolean;
  /** Members of its argument that Temporal's list of runs has too. */
  listed?: readonly string[];
};

/** A workflow that must run to its end: the row stands until the workflow's last activity deletes it. */
export type WorkflowTask = {
  workflowId: string;
  kind: TaskKind;
  /** Empty: it is about no WABA. */
  wabaId: string;
  /** The eventId of what the workflow publishes, by whose hash operators find it; an id of ours if it publishes nothing. */
  eventId: string;
  /** Ids only: what the workflow works on is in the database. */
  argument: Record<string, string>;
  /** What an operator reads in the Temporal UI, up to 400 bytes; the summary of its kind unless given. */
  summary?: string | null;
  /** Temporal starts the workflow then; null: at once. */
  startsAt?: Date | null;
};

/** `starts`: how often it was taken since it was added or woken, this time included. */
export type TakenTask = Omit<WorkflowTask, 'kind'> & {
  workflowType: string;
  starts: number;
  /** How long until `startsAt`; null without one, not positive when it has passed. */
  startsInMs: number | null;
  tenantId: string | null;
};

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
    `insert into workflow_tasks (workflow_id, workflow_type, waba_id, event_id, argument, summary, starts_at, next_start_at, give_at)
     select t.*, coalesce(t.starts_at, now() + :startWithinMs * interval '1 millisecond'),
            case when t.starts_at is not null then now() end
       from unnest(:workflowIds::text[], :workflowTypes::text[], :wabaIds::text[], :eventIds::text[], :arguments::jsonb[], :summaries::text[], :startTimes::timestamptz[])
         as t (workflow_id, workflow_type, waba_id, event_id, argument, summary, starts_at) on conflict do nothing`,
    {
      startWithinMs,
      workflowIds: tasks.map((task) => task.workflowId),
      workflowTypes: tasks.map((task) => task.kind.workflowType),
      wabaIds: tasks.map((task) => task.wabaId),
      eventIds: tasks.map((task) => task.eventId),
      arguments: tasks.map((task) => JSON.stringify(task.argument)),
      summaries: tasks.map((task) => task.summary ?? null),
      startTimes: tasks.map((task) => task.startsAt ?? null),
    },
  );
  if (startWithinMs === 0) trx.notify('heliograph_workflow_tasks');
}

/**
 * Adds a task of a kind for each row of `chosen` (SQL: workflow_id, waba_id, argument, next_start_at); `again`: one that stands is started
 * once more then. Returns how many that makes.
 */
export async function insertChosenTasks(
  database: Database,
  { workflowType }: TaskKind,
  { chosen, again = false }: { chosen: string; again?: boolean },
  bindings: Bindings = {},
): Promise<number> {
  const conflict = again
    ? '(workflow_id) do update set starts = 0, next_start_at = excluded.next_start_at'
    : 'do nothing';
  const count = await execute(
    database,
    `insert into workflow_tasks (workflow_id, waba_id, argument, next_start_at, workflow_type, event_id)
     select c.*, :workflowType, '' from (${chosen}) as c on conflict ${conflict}`,
    { ...bindings, workflowType },
  );
  if (count > 0) database.notify('heliograph_workflow_tasks');
  return count;
}

/** SQL: due at once; what Temporal starts later is given to it again. */
const DUE = `next_start_at = greatest(now(), starts_at), give_at = case when starts_at > now() then now() end`;

/** Makes a task due at once, when the transaction commits, because what its workflow works on has changed. */
export async function wakeTask(trx: Transaction, workflowId: string): Promise<void> {
  await execute(trx, `update workflow_tasks set starts = 0, ${DUE} where workflow_id = :workflowId`, {
    workflowId,
  });
  trx.notify('heliograph_workflow_tasks');
}

/** Has Temporal start the workflow of a task at another time; null: at once. A run that waits for the former time is replaced. */
export async function moveTask(
  trx: Transaction,
  workflowId: string,
  { startsAt, summary }: { startsAt: Date | null; summary: string | null },
): Promise<void> {
  await execute(
    trx,
    'update workflow_tasks set starts_at = :startsAt, summary = :summary where workflow_id = :workflowId',
    { workflowId, startsAt, summary },
  );
  await wakeTask(trx, workflowId);
}

/** Makes all tasks due at once: Temporal has lost their workflows. */
export async function wakeAllTasks(database: Database): Promise<void> {
  await execute(database, `update workflow_tasks set starts = 0, ${DUE}`);
  database.notify('heliograph_workflow_tasks');
}

/**
 * A page of the tasks whose workflow may have been started, by the ids of their workflows: those that were taken before,
 * and those of kinds that are started without being taken.
 */
export async function listStartedTasks(
  database: Database,
  kinds: readonly TaskKind[],
  after: string,
  limit: number,
): Promise<Pick<TakenTask, 'workflowId' | 'workflowType' | 'argument' | 'starts'>[]> {
  return await query(
    database,
    `select workflow_id as "workflowId", workflow_type as "workflowType", argument, starts from workflow_tasks
      where workflow_id > :after and (starts > 0 or workflow_type = any (:types::text[])) order by workflow_id limit :limit`,
    { after, types: typesOf(kinds, (kind) => kind.isStartedByItsRoom), limit },
  );
}

export async function findTasks(database: Database, workflowIds: readonly string[]): Promise<Set<string>> {
  const finding = 'select workflow_id from workflow_tasks where workflow_id = any (:workflowIds::text[])';
  return new Set(await queryColumn<string>(database, finding, { workflowIds }));
}

/** SQL: whether a task is due soon. */
export const HAS_TASK = ['next_start_at', 'give_at']
  .map((time) => `exists (select from workflow_tasks where ${time} <= ${SOON})`)
  .join(' or ');

const RESTART_AFTER_MS = 60_000;

/** In case Temporal has lost it. */
const LATE_START = `starts_at + interval '5 seconds'`;

/**
 * Takes tasks whose time has come. Each comes up again after a growing wait (1 to 64 minutes, always one where its kind
 * asks for that) as long as its row stands; starting a workflow that already runs changes nothing, so a lost start
 * costs only that wait. What Temporal starts later is given to it at once, once more a minute later, and comes up after its time.
 */
export async function takeDueTasks(
  database: Database,
  kinds: readonly TaskKind[],
  limit: number,
): Promise<TakenTask[]> {
  return await query<TakenTask>(
    database,
    `update workflow_tasks
        set starts = starts + 1,
            give_at = case when starts = 0 and starts_at > now() then now() + :restartAfterMs * interval '1 millisecond' end,
            next_start_at = case when starts_at > now() then ${LATE_START}
              else now() + :restartAfterMs * power(2, case when workflow_type = any (:types::text[]) then 0 else least(starts, 6) end) * interval '1 millisecond' end
      where workflow_id = any (
        array(select workflow_id from workflow_tasks where next_start_at <= now()
               order by next_start_at limit :limit for update skip locked)
        || array(select workflow_id from workflow_tasks where give_at <= now()
                  order by give_at limit :limit for update skip locked))
     returning workflow_id as "workflowId", workflow_type as "workflowType", waba_id as "wabaId",
               event_id as "eventId", argument, summary, starts, starts_at as "startsAt",
               cast(extract(epoch from starts_at - clock_timestamp()) * 1000 as double precision) as "startsInMs",
               (select tenant_id from wabas where waba_id = workflow_tasks.waba_id) as "tenantId"`,
    { restartAfterMs: RESTART_AFTER_MS, types: typesOf(kinds, (kind) => kind.isRestartedEveryMinute), limit },
  );
}

function typesOf(kinds: readonly TaskKind[], isWanted: (kind: TaskKind) => boolean | undefined): string[] {
  return kinds.filter(isWanted).map(({ workflowType }) => workflowType);
}

/** Makes tasks due again at once, because their workflow could not be started. */
export async function returnTasks(database: Database, workflowIds: readonly string[]): Promise<void> {
  await execute(
    database,
    `update workflow_tasks set starts = greatest(starts - 1, 0), ${DUE}
      where workflow_id = any (:workflowIds::text[])`,
    { workflowIds },
  );
}

/** The caller does the work of tasks that are not due yet: they are for as long. */
export async function holdTasks(
  database: Database,
  workflowIds: readonly string[],
  ms: number,
): Promise<void> {
  await execute(
    database,
    `update workflow_tasks set next_start_at = now() + :ms * interval '1 millisecond'
      where workflow_id = any (:workflowIds::text[]) and next_start_at > now()`,
    { workflowIds, ms },
  );
}

/** Drops those of tasks that Temporal was never given. */
export async function dropUnstarted(trx: Transaction, workflowIds: readonly string[]): Promise<void> {
  await execute(
    trx,
    'delete from workflow_tasks where workflow_id = any (:workflowIds::text[]) and starts = 0 and starts_at is null',
    { workflowIds },
  );
}

/** Ends a task, in the transaction that holds the workflow's result. */
export async function finishTask(trx: Transaction, workflowId: string): Promise<void> {
  await execute(trx, 'delete from workflow_tasks where workflow_id = :workflowId', { workflowId });
}

/** Up to `limit` workflows of the tasks of a WABA, without the types that are like one of these. */
export async function listTasksOfWaba(
  database: Database,
  wabaId: string,
  exceptTypes: readonly string[],
  limit: number,
): Promise<string[]> {
  return await queryColumn(
    database,
    `select workflow_id from workflow_tasks
      where waba_id = :wabaId and workflow_type not like all (:exceptTypes::text[]) limit :limit`,
    { wabaId, exceptTypes, limit },
  );
}

export async function deleteTasks(trx: Transaction, workflowIds: readonly string[]): Promise<void> {
  await execute(trx, 'delete from workflow_tasks where workflow_id = any (:workflowIds::text[])', {
    workflowIds,
  });
}

/** As `finishTask`, unless the same work was asked for again since the workflow was last started. */
export async function finishAskedTask(trx: Transaction, workflowId: string): Promise<void> {
  await execute(trx, 'delete from workflow_tasks where workflow_id = :workflowId and starts > 0', {
    workflowId,
  });
}
