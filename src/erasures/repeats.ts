import { type BodyPlace, eraseRepeats, FIRST_BODY } from '../inbound/erase-bodies.ts';
import { erasedName } from '../messages/messages.ts';
import type { Database } from '../platform/postgres/database.ts';
import { execute, query } from '../platform/postgres/sql.ts';

/**
 * Goes over the raw bodies of WABAs of which upstream repeated something erased: intake made nothing of it, and here it
 * goes out of the bodies too. For housekeeping.
 */
export async function sweepRepeats({ database }: { database: Database }): Promise<void> {
  const repeats = await query<{ wabaId: string; since: Date }>(
    database,
    'delete from erased_repeats returning waba_id as "wabaId", since',
  );
  for (const [index, repeat] of repeats.entries()) {
    try {
      await sweepWaba(database, repeat);
    } catch (error) {
      // The rest is noted again, for the next time.
      for (const { wabaId, since } of repeats.slice(index)) await noteAgain(database, wabaId, since);
      throw error;
    }
  }
}

async function noteAgain(database: Database, wabaId: string, since: Date): Promise<void> {
  await execute(
    database,
    `insert into erased_repeats (waba_id, since) values (?, ?)
     on conflict (waba_id) do update set since = least(erased_repeats.since, excluded.since)`,
    [wabaId, since],
  );
}

/** A body is stored a little before intake notes what it repeats. */
const EARLIER_MS = 3_600_000;

async function sweepWaba(
  database: Database,
  { wabaId, since }: { wabaId: string; since: Date },
): Promise<void> {
  const from = new Date(since.getTime() - EARLIER_MS);
  let place: BodyPlace | null = { ...FIRST_BODY, day: dayBefore(from) };
  while (place !== null) {
    const after: BodyPlace = place;
    place = await database.transaction((trx) =>
      eraseRepeats(
        trx,
        {
          ...{ wabaId, since: from },
          findErased: async (items) => {
            const named = items.flatMap((item) =>
              item.kind === 'payment' ? [] : [{ item, name: erasedName(item, item.upstreamId) }],
            );
            const rows = await query<{ name: string }>(
              trx,
              `select name from unnest(?::text[]) as n (name)
                where exists (select from erased_items e
                        where e.key = sha256((select salt from erasure_salt) || convert_to(name, 'UTF8')) offset 0)`,
              [named.map(({ name }) => name)],
            );
            const erased = new Set(rows.map(({ name }) => name));
            return new Set(named.filter(({ name }) => erased.has(name)).map(({ item }) => item));
          },
        },
        after,
      ),
    );
  }
}

function dayBefore(time: Date): string {
  return new Date(time.getTime() - 86_400_000).toISOString().slice(0, 10);
}

/** Upstream says nothing of a message after so long. */
const REMEMBERED_DAYS = 400;

/** Forgets up to `limit` of the oldest hashes of erased messages; returns how many. */
export async function forgetOldErasedItems(database: Database, limit: number): Promise<number> {
  return await execute(
    database,
    `delete from erased_items where key = any (array(
       select key from erased_items where erased_at < now() - interval '${REMEMBERED_DAYS} days'
        order by erased_at limit ?))`,
    [limit],
  );
}
