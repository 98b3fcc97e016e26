import { expect, test } from 'vitest';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { claimAll } from '../../support/due-shares.ts';
import { holdSnapshot } from '../../support/held-snapshot.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { settleAndFollow } from '../../support/settle-rows.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';

/**
 * Looking for what waits behind a delivery costs the same however many went through its lane, also while somebody holds an
 * old snapshot, as a dump does: nothing of what was settled since then can be cleared away.
 */

const WABA = '900000000000101';
const DELIVERIES = 300;

/** Entries of the indexes of the queue that looks of this database read until now, those of dead rows too. */
async function entriesRead(database: Database): Promise<number> {
  await database.raw('select pg_stat_force_next_flush()');
  const [row] = await query<{ count: string }>(
    database,
    `select sum(idx_tup_read) as count from pg_stat_user_indexes where relname = 'delivery_queue'`,
  );
  return Number(row?.count);
}

test('what follows in a lane is found by reading as much behind 300 others and an old snapshot as behind ten', async () => {
  const { database, url } = await seededWorkerDatabase(1);
  const [endpointId = ''] = await addEndpoints(database, WABA, {
    urls: ['https://e.example'],
    ratePerSecond: null,
  });
  await holdSnapshot(url);
  const queueOne = () => queueEach(database, WABA, [endpointId], () => 'one lane');
  await queueOne();
  const { deliveries, token } = await claimAll(database, { limit: 1 });
  let head = deliveries;
  const entries: number[] = [];
  for (let n = 0; n < DELIVERIES; n += 1) {
    await queueOne();
    // The usual state of the queue, by which a plan is made that stays.
    if (n === 0) await database.raw('analyze delivery_queue');
    const before = await entriesRead(database);
    head = await settleAndFollow(database, head, token);
    entries.push((await entriesRead(database)) - before);
    expect(head).toHaveLength(1);
  }
  const [early, late] = [Math.max(...entries.slice(10, 20)), Math.max(...entries.slice(-10))];
  expect(late, `${early} entries at first, ${late} at last`).toBeLessThanOrEqual(early);
});
