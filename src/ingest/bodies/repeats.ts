import { holdIntake } from '../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import type { ErasedTable } from '../../platform/erasing.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, query, queryColumn } from '../../platform/postgres/sql.ts';
import { erasedNameOf } from '../intake/erased-name.ts';
import { type BodyPlace, eraseRepeats, FIRST_BODY } from './erase-bodies.ts';

/**
 * Goes over the raw bodies of WABAs of which upstream repeated something erased: intake made nothing of it, and here it
 * goes out of the bodies too. For housekeeping. Each note stays until its bodies are done, in this turn or a later one.
 */
export async function sweepRepeats(
  { database }: { database: Database },
  ending: AbortSignal = new AbortController().signal,
): Promise<void> {
  const noted = await queryColumn<string>(database, 'select waba_id from erased_repeats order by since');
  for (const wabaId of noted) {
    if (ending.aborted) return;
    const sweep = await beginSweep(database, wabaId);
    if (sweep === null) continue;
    const place = await sweepWaba(database, sweep, ending);
    if (place === null) await endSweep(database, sweep);
    else await keepPlace(database, wabaId, place);
  }
}

type Sweep = { wabaId: string; since: Date; begunAt: Date; day: string | null; id: string | null };

/** Under the lock of intake, so that whatever it notes from then on is seen when the sweep ends. Null: the WABA is gone. */
async function beginSweep(database: Database, wabaId: string): Promise<Sweep | null> {
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
async function endSweep(database: Database, { wabaId, begunAt }: Sweep): Promise<void> {
  await execute(
    database,
    `with swept as (delete from erased_repeats where waba_id = :wabaId and is_being_swept)
     update erased_repeats set since = :begunAt where waba_id = :wabaId and not is_being_swept`,
    { wabaId, begunAt },
  );
}

async function keepPlace(database: Database, wabaId: string, { day, id }: BodyPlace): Promise<void> {
  await execute(
    database,
    'update erased_repeats set swept_day = :day, swept_id = :id where waba_id = :wabaId',
    { day, id, wabaId },
  );
}

/** A body is stored a little before intake notes what it repeats. */
const EARLIER_MS = 3_600_000;

/** Returns where it was cut off; null: it has come to the end. */
async function sweepWaba(
  database: Database,
  { wabaId, since, day, id }: Sweep,
  ending: AbortSignal,
): Promise<BodyPlace | null> {
  const from = new Date(since.getTime() - EARLIER_MS);
  let place: BodyPlace | null =
    day === null || id === null ? { ...FIRST_BODY, day: dayBefore(from) } : { day, id };
  while (place !== null && !ending.aborted) {
    const after: BodyPlace = place;
    place = await database.transaction((trx) =>
      eraseRepeats(
        trx,
        {
          wabaId,
          since: from,
          findErased: async (items) => {
            const named = items.flatMap((item) =>
              [erasedNameOf(item)].flatMap((name) => (name === null ? [] : [{ item, name }])),
            );
            const erased = new Set(
              await queryColumn<string>(
                trx,
                `select name from unnest(:names::text[]) as n (name)
                where exists (select from erased_items e
                        where e.key = sha256((select salt from erasure_salt) || convert_to(name, 'UTF8')) offset 0)`,
                { names: named.map(({ name }) => name) },
              ),
            );
            return new Set(named.filter(({ name }) => erased.has(name)).map(({ item }) => item));
          },
        },
        after,
      ),
    );
  }
  return place;
}

function dayBefore(time: Date): string {
  return new Date(time.getTime() - 86_400_000).toISOString().slice(0, 10);
}

export const ERASED_REPEATS: ErasedTable = { table: 'erased_repeats', count: 'repeats', key: 'waba_id' };
