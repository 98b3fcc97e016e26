import { expect, test } from 'vitest';
import { ageDatabase } from '../../../bench/stack/aged-database.ts';
import type { ClaimedDelivery } from '../../../src/engine/queue/claim.ts';
import type { Database, Transaction } from '../../../src/platform/postgres/database.ts';
import { claimAll } from '../../support/due-shares.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { partitionsOpened } from '../../support/partitions-opened.ts';
import { rowsRead } from '../../support/rows-read.ts';
import { settleAndFollow, settleFailed } from '../../support/settle-rows.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { vacuumed } from '../../support/vacuumed.ts';

const WABA = '900000000000101';
const EVENTS = 6_000;
const DELIVERIES_PER_LANE = 20;

/** More often than a statement is planned for its values. */
const SETTLED = 8;

/** Has the claims of a lane settled one after the other; returns how many rows of events were read for each follower. */
async function readPerFollower(database: Database): Promise<number[]> {
  const { deliveries, token } = await claimAll(database, { limit: 10 });
  return await database.transaction(async (trx) => {
    const perFollower: number[] = [];
    let current = deliveries;
    // More often than a statement is planned for its values.
    for (let turn = 1; turn < DELIVERIES_PER_LANE; turn += 1) {
      const before = await rowsRead(trx, 'events');
      current = await settleAndFollow(trx, current, token);
      expect(current).toHaveLength(10);
      expect(current.every(({ body }) => body !== null)).toBe(true);
      perFollower.push(((await rowsRead(trx, 'events')) - before) / current.length);
    }
    return perFollower;
  });
}

/** A database with one endpoint; `add` queues deliveries, 20 in a lane. */
async function withLanes() {
  const { database } = await seededWorkerDatabase(1);
  const [endpointId = ''] = await addEndpoints(database, WABA, {
    urls: ['https://e.example'],
    ratePerSecond: null,
  });
  const add = async (count: number) => {
    const endpointIds = Array.from({ length: count }, () => endpointId);
    await queueEach(database, WABA, endpointIds, (n) => `lane ${Math.floor(n / DELIVERIES_PER_LANE)}`);
  };
  return { database, add };
}

test('to claim what waits behind a delivery reads its event alone, also by plans of when the day had none', async () => {
  const { database, add } = await withLanes();
  await add(10 * DELIVERIES_PER_LANE);
  await readPerFollower(database);
  await add(EVENTS);
  const perFollower = await readPerFollower(database);
  expect(Math.max(...perFollower), perFollower.join()).toBeLessThanOrEqual(2);
});

test('to record a delivery and claim what waits behind it opens one day of each table, also on a database of 98', async () => {
  const { database, add } = await withLanes();
  await add(2 * DELIVERIES_PER_LANE);
  const opened = () =>
    partitionsOpened(database, async (trx) => {
      const { deliveries, token } = await claimAll(trx, { limit: 2 });
      expect(await settleAndFollow(trx, deliveries, token)).toHaveLength(2);
    });
  const young = await opened();
  await ageDatabase(database, { keysPerDay: 1 });
  expect(await opened()).toEqual(young);
  expect(young.map((name) => name.replace(/_[0-9]+$/, ''))).toEqual(['deliveries', 'events']);
});

test.each<[string, (trx: Transaction, head: ClaimedDelivery, token: string) => Promise<unknown>]>([
  [
    'to record a delivery and claim what waits behind it',
    async (trx, head, token) => expect(await settleAndFollow(trx, [head], token)).toHaveLength(1),
  ],
  ['to record a failure', (trx, head, token) => settleFailed(trx, [head], token)],
])('%s reads nothing else of the queue, by the statistics of an empty one', async (_what, settle) => {
  const { database, add } = await withLanes();
  await database.raw('alter table delivery_queue set (autovacuum_enabled = false)');
  await add(DELIVERIES_PER_LANE);
  await database.raw('analyze delivery_queue');
  await database.raw('delete from delivery_queue');
  await vacuumed(database, 'vacuum delivery_queue');
  await add(300 * DELIVERIES_PER_LANE);
  const { deliveries, token } = await claimAll(database, { limit: 200, share: 200 });
  const read = await database.transaction(async (trx) => {
    const before = await rowsRead(trx, 'delivery_queue');
    for (const head of deliveries.slice(0, SETTLED)) await settle(trx, head, token);
    return (await rowsRead(trx, 'delivery_queue')) - before;
  });
  expect(read).toBeLessThan(SETTLED * 20);
});
