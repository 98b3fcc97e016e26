import { laneOf } from '../domain/ordering-key.ts';
import type { Transaction } from './database.ts';
import { query } from './sql.ts';

type Keyed = { wabaId: string; laneKey: string };

/**
 * Numbers events within their ordering key, 1, 2, 3 …, in the order given; returns one number per event.
 * The key's row stays locked until commit, so numbers follow the order in which events are stored.
 */
export async function drawSequences(trx: Transaction, events: readonly Keyed[]): Promise<string[]> {
  const counts = new Map<string, { wabaId: string; key: string; count: number }>();
  for (const event of events) {
    const key = laneOf(event.laneKey);
    const entry = counts.get(`${event.wabaId} ${key}`);
    if (entry) entry.count += 1;
    else counts.set(`${event.wabaId} ${key}`, { wabaId: event.wabaId, key, count: 1 });
  }
  const wanted = [...counts.values()];
  const rows = await query<{ waba_id: string; key: string; last_sequence: string }>(
    trx,
    `insert into ordering_keys (waba_id, key, last_sequence)
     select waba_id, key, n from unnest(?::text[], ?::text[], ?::bigint[]) as k (waba_id, key, n)
      order by waba_id, key
     on conflict (waba_id, key) do update
        set last_sequence = ordering_keys.last_sequence + excluded.last_sequence, updated_at = now()
     returning waba_id, key, last_sequence`,
    [wanted.map((k) => k.wabaId), wanted.map((k) => k.key), wanted.map((k) => k.count)],
  );
  const next = new Map<string, bigint>();
  for (const row of rows) {
    const name = `${row.waba_id} ${row.key}`;
    next.set(name, BigInt(row.last_sequence) - BigInt(counts.get(name)?.count ?? 0));
  }
  return events.map((event) => {
    const name = `${event.wabaId} ${laneOf(event.laneKey)}`;
    const sequence = (next.get(name) ?? 0n) + 1n;
    next.set(name, sequence);
    return sequence.toString();
  });
}
