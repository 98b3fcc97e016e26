import type { Database } from './database.ts';
import { execute, query } from './sql.ts';

/** A process that was not heard of for this long is taken for dead. */
const ALIVE_SECONDS = 5;

export type WorkerPeers = {
  /** Live worker processes, this one included. */
  count: number;
  /** How many of the others come before this one. */
  rank: number;
  /** Whether one of the others runs on another machine (or in another container). */
  isElsewhere: boolean;
  /** Whether this one does what one of all has to do; another does once it was not heard of for a while. */
  isLeader: boolean;
};

/** Tells the others that this process lives; returns what they told. */
export async function reportWorker(database: Database, id: string): Promise<WorkerPeers> {
  const [row] = await query<WorkerPeers>(
    database,
    `with reported as (
       insert into worker_processes (id) values (:id) on conflict (id) do update set seen_at = now()
     )
     select count(*)::integer + 1 as count, count(*) filter (where id < :id)::integer as rank,
            coalesce(bool_or(split_part(id, ':', 1) <> split_part(:id, ':', 1)), false) as "isElsewhere",
            not coalesce(bool_or(id < :id), false) as "isLeader"
       from worker_processes
      where id <> :id and seen_at > now() - cast(:aliveSeconds as integer) * interval '1 second'`,
    { id, aliveSeconds: ALIVE_SECONDS },
  );
  return row ?? { count: 1, rank: 0, isElsewhere: false, isLeader: true };
}

/** Takes a process that ends off the list, and those that died long ago. */
export async function forgetWorker(database: Database, id: string): Promise<void> {
  await execute(
    database,
    `delete from worker_processes where id = ? or seen_at < now() - interval '1 hour'`,
    [id],
  );
}
