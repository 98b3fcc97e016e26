import type { Database } from './database.ts';
import { execute, query, queryColumn, queryOnly, queryValue } from './sql.ts';

/** A worker sends a heartbeat every second or two; a process without one for longer is taken for dead. */
export const WORKER_LIVES_MS = 5_000;

/** SQL: by the clock of the database. */
const LIVES = `seen_at > now() - interval '${WORKER_LIVES_MS} milliseconds'`;

export type WorkerPeers = {
  /** Live worker processes, this one included. */
  count: number;
  rank: number;
  /** Whether one of the others runs on another machine (or in another container). */
  isElsewhere: boolean;
  /** Whether this one does what only one process has to do; another does once its heartbeat is missing. */
  isLeader: boolean;
};

/** Whether looks that find the same in every process are left to the leader. */
export function standsAside({ count, isLeader }: WorkerPeers): boolean {
  return count > 1 && !isLeader;
}

/** Attempts that a process made lately, and those of them that a run of their delivery shows. */
export type RecentAttempts = { attempts: number; withRun: number };

/** Tells the others that this process lives, and what it did; returns what they reported. */
export async function reportWorker(
  database: Database,
  id: string,
  recent: RecentAttempts = { attempts: 0, withRun: 0 },
  proxyTrouble: string | null = null,
): Promise<WorkerPeers> {
  return await queryOnly<WorkerPeers>(
    database,
    `with reported as (
       insert into worker_processes as w (id, recent_attempts, recent_with_run, proxy_trouble)
       values (:id, :attempts, :withRun, :proxyTrouble)
       on conflict (id) do update
          set seen_at = now(), recent_attempts = excluded.recent_attempts, recent_with_run = excluded.recent_with_run,
              proxy_trouble = excluded.proxy_trouble
     )
     select count(*)::integer + 1 as count, count(*) filter (where id < :id)::integer as rank,
            coalesce(bool_or(split_part(id, ':', 1) <> split_part(:id, ':', 1)), false) as "isElsewhere",
            not coalesce(bool_or(id < :id), false) as "isLeader"
       from worker_processes
      where id <> :id and ${LIVES}`,
    { id, ...recent, proxyTrouble },
  );
}

export type SeenWorker = RecentAttempts & { id: string; seenAt: Date; isUp: boolean };

/** The worker processes of the last hour, the latest heard first. */
export async function listSeenWorkers(database: Database): Promise<SeenWorker[]> {
  return await query<SeenWorker>(
    database,
    `select id, seen_at as "seenAt", ${LIVES} as "isUp", recent_attempts::float8 as attempts,
            recent_with_run::float8 as "withRun"
       from worker_processes where seen_at > now() - interval '1 hour' order by seen_at desc, id`,
  );
}

/** What live worker processes find wrong with the egress proxy, each reason once. */
export async function listProxyFaults(database: Database): Promise<string[]> {
  return await queryColumn(
    database,
    `select distinct proxy_trouble from worker_processes where proxy_trouble is not null and ${LIVES} order by 1`,
  );
}

export async function forgetWorker(database: Database, id: string): Promise<void> {
  await execute(
    database,
    `delete from worker_processes where id = :id or seen_at < now() - interval '1 hour'`,
    { id },
  );
}

/** SQL: whether a step is due, or has never been taken. */
export function isStepDue(step: string): string {
  return `not exists (select from housekeeping_steps where step = '${step}' and next_at > now())`;
}

/** Those of the steps that are due, or were never taken. */
export async function listDueSteps(database: Database, steps: readonly string[]): Promise<Set<string>> {
  const due = await queryColumn<string>(
    database,
    `select step from unnest(cast(:steps as text[])) as given (step)
      where not exists (select from housekeeping_steps s where s.step = given.step and s.next_at > now())`,
    { steps },
  );
  return new Set(due);
}

/** Takes a step for `holdMs` when it is due and no other process has it; after that time it is free again. */
export async function takeHousekeepingStep(
  database: Database,
  step: string,
  holdMs: number,
): Promise<boolean> {
  const taken = await execute(
    database,
    `insert into housekeeping_steps as s (step, next_at)
     values (:step, clock_timestamp() + :holdMs * interval '1 millisecond')
     on conflict (step) do update set next_at = excluded.next_at where s.next_at <= (select clock_timestamp())`,
    { step, holdMs },
  );
  return taken === 1;
}

/** Releases a step that was cut off: another process goes on with it. */
export async function releaseHousekeepingStep(database: Database, step: string): Promise<void> {
  await execute(database, 'update housekeeping_steps set next_at = clock_timestamp() where step = :step', {
    step,
  });
}

/** With what a step failed, and the text of it that is kept; null: it went well. */
export async function failureOf(run: Promise<unknown>): Promise<{ error: unknown; text: string } | null> {
  try {
    await run;
    return null;
  } catch (reason) {
    const error: unknown = reason ?? new Error('no reason given');
    return { error, text: error instanceof Error ? error.message : String(error) };
  }
}

/** Notes how a step ended, null for well, and when its next turn is; returns since when it fails. */
export async function finishHousekeepingStep(
  database: Database,
  step: string,
  { error, nextMs }: { error: string | null; nextMs: number },
): Promise<Date | null> {
  return await queryValue<Date>(
    database,
    `update housekeeping_steps
        set next_at = clock_timestamp() + :nextMs * interval '1 millisecond', error = given.error,
            succeeded_at = case when given.error is null then clock_timestamp() else succeeded_at end,
            failing_since = case when given.error is not null then coalesce(failing_since, clock_timestamp()) end
       from (select cast(:error as text) as error) as given
      where step = :step returning failing_since`,
    { step, error, nextMs },
  );
}

export type HousekeepingStep = {
  step: string;
  succeededAt: Date | null;
  /** Null: its last turn went well. */
  failingSince: Date | null;
  error: string | null;
};

export async function listHousekeepingSteps(database: Database): Promise<HousekeepingStep[]> {
  return await query<HousekeepingStep>(
    database,
    `select step, succeeded_at as "succeededAt", failing_since as "failingSince", error
       from housekeeping_steps order by step`,
  );
}
