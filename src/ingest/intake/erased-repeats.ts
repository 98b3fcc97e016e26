import { holdIntake } from '../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import type { ErasedTable } from '../../platform/erasing.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, query, queryColumn } from '../../platform/postgres/sql.ts';

/** SQL: notes of which WABAs of `given` something `erased` came again. */
export const NOTE_REPEATS = `insert into erased_repeats (waba_id)
    select distinct waba_id from given g
     where erased and not exists (select from erased_repeats r where r.waba_id = g.waba_id and not r.is_being_swept)
    on conflict (waba_id) do update set is_being_swept = false`;

/** The WABAs that are noted, for the longest time first. */
export async function listRepeats(database: Database): Promise<string[]> {
  return await queryColumn<string>(database, 'select waba_id from erased_repeats order by since');
}

export type Sweep = { wabaId: string; since: Date; begunAt: Date; day: string | null; id: string | null };

/** Under the lock of intake, so that whatever it notes from then on is seen when the sweep ends. Null: the WABA is gone. */
export async function beginSweep(database: Database, wabaId: string): Promise<Sweep | null> {
  return await database.transaction(async (trx) => {
    await holdIntake(trx, shardOf(wabaId));
    const [sweep] = await query<Sweep>(
      trx,
      `update erased_repeats
          set is_being_swept = true, swept_day = case when is_being_swept then swept_day end,
              swept_id = case when is_being_swept then swept_id end
        where waba_id = :wabaId
       returning waba_id as "wabaId", since, clock_timestamp() as "begunAt", swept_day as day, swept_id as id`,
      { wabaId },
    );
    return sweep ?? null;
  });
}

/** A body that was repeated meanwhile is left for the next sweep. */
export async function endSweep(database: Database, { wabaId, begunAt }: Sweep): Promise<void> {
  await execute(
    database,
    `with swept as (delete from erased_repeats where waba_id = :wabaId and is_being_swept)
     update erased_repeats set since = :begunAt where waba_id = :wabaId and not is_being_swept`,
    { wabaId, begunAt },
  );
}

export async function keepPlace(
  database: Database,
  wabaId: string,
  { day, id }: { day: string; id: string },
): Promise<void> {
  await execute(
    database,
    'update erased_repeats set swept_day = :day, swept_id = :id where waba_id = :wabaId',
    { day, id, wabaId },
  );
}

export const ERASED_REPEATS: ErasedTable = { table: 'erased_repeats', count: 'repeats', key: 'waba_id' };
