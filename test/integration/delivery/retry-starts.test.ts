import { describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/database.ts';
import { query } from '../../../src/database/sql.ts';
import { returnRetryStarts, takeRetryStarts } from '../../../src/deliveries/queue/retry-starts.ts';
import { seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';

const LIMITS = { perEndpoint: 3, overall: 5, limit: 50 };

/** Rows that wait for a retry without a workflow, due in so many seconds each. */
async function park(database: Database, endpointId: number, dueInSeconds: readonly number[]) {
  await database.raw(
    `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid,
                                 attempts, awaits_workflow, next_attempt_at)
     select ${endpointId}, 'lane ' || n, 'retrying', true, current_date, gen_random_uuid(), current_date,
            gen_random_uuid(), 1, true, now() + s * interval '1 second'
       from unnest(array[${dueInSeconds.join(',')}]) with ordinality as d (s, n)`,
  );
}

async function seeded() {
  const { database } = await testWorkerDatabase();
  await seedFixtureAccounts(database);
  return database;
}

const ofEndpoint = (starts: readonly { endpointId: string }[], id: string) =>
  starts.filter(({ endpointId }) => endpointId === id).length;

describe('retry workflows are bounded', () => {
  test('per endpoint: one with many failures leaves room for the others', async () => {
    const database = await seeded();
    await park(database, 1, [60, 61, 62, 63, 64, 65]);
    await park(database, 2, [70]);
    const starts = await takeRetryStarts(database, LIMITS);
    expect(ofEndpoint(starts, '1')).toBe(3);
    expect(await takeRetryStarts(database, LIMITS)).toEqual([]);
  });

  test('overall: no more are opened than Temporal is to hold', async () => {
    const database = await seeded();
    for (const endpoint of [1, 2, 3, 4]) await park(database, endpoint, [60, 61]);
    expect((await takeRetryStarts(database, LIMITS)).length).toBeLessThanOrEqual(5);
    expect(await takeRetryStarts(database, LIMITS)).toEqual([]);
  });

  test('but what is due is attempted, however many others sleep', async () => {
    const database = await seeded();
    await park(database, 1, [3_600, 3_601, 3_602]);
    await park(database, 2, [3_600, 3_601]);
    expect(await takeRetryStarts(database, LIMITS)).toHaveLength(5);
    await database.raw(`update delivery_queue set lane = 'old ' || lane`);
    await park(database, 1, [-1]);
    await park(database, 3, [-2]);
    const starts = await takeRetryStarts(database, LIMITS);
    expect([ofEndpoint(starts, '1'), ofEndpoint(starts, '3')]).toEqual([1, 1]);
  });

  test('a start that failed is taken again', async () => {
    const database = await seeded();
    await park(database, 1, [60]);
    const [start] = await takeRetryStarts(database, LIMITS);
    await returnRetryStarts(database, [start?.deliveryId ?? '']);
    expect(await takeRetryStarts(database, LIMITS)).toEqual([start]);
    const rows = await query<{ awaits: boolean }>(
      database,
      'select awaits_workflow as awaits from delivery_queue',
    );
    expect(rows).toEqual([{ awaits: false }]);
  });
});
