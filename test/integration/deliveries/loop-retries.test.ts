import { describe, expect, test } from 'vitest';
import { findRetryRoom } from '../../../src/deliveries/queue/settle.ts';
import { releaseDueRetries, retryInLoop, takeOverdue } from '../../../src/deliveries/queue/sweep.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';
const SECOND_WABA = '900000000000202';
const LIMITS = { perEndpoint: 3, overall: 8 };
const EVERYTHING = { withinSeconds: 86_400, limit: 50 };

/** Retries that are due in so many seconds each. */
async function addRetries(
  database: Database,
  endpointId: string,
  { byWorkflow, dueInSeconds }: { byWorkflow: boolean; dueInSeconds: readonly number[] },
) {
  await database.raw(
    `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid,
                                 attempts, by_workflow, next_attempt_at)
     select ${endpointId}, gen_random_uuid(), 'retrying', true, current_date, gen_random_uuid(), current_date,
            gen_random_uuid(), 1, ${byWorkflow}, now() + s * interval '1 second'
       from unnest(array[${dueInSeconds.join(',')}]) as s`,
  );
}

async function seeded() {
  const { database } = await testWorkerDatabase();
  await seedFixtureAccounts(database);
  return database;
}

type Row = { id: string; endpointId: string; state: string; byWorkflow: boolean };

const rowsOf = (database: Database) =>
  query<Row>(
    database,
    `select delivery_id as id, endpoint_id as "endpointId", state, by_workflow as "byWorkflow"
       from delivery_queue order by position`,
  );

describe('retries that no workflow carries', () => {
  test('become due at their time, the oldest first; those of workflows stay theirs', async () => {
    const database = await seeded();
    const { id: loops } = await addEndpoint(database, WABA, 'https://a.example');
    const { id: workflows } = await addEndpoint(database, WABA, 'https://b.example');
    await addRetries(database, loops, { byWorkflow: false, dueInSeconds: [-1, -3, -2, 60] });
    await addRetries(database, workflows, { byWorkflow: true, dueInSeconds: [-5] });
    expect(await releaseDueRetries(database, { ...EVERYTHING, limit: 2 })).toBe(2);
    expect((await rowsOf(database)).map(({ state }) => state)).toEqual([
      ...['retrying', 'due', 'due', 'retrying'],
      'retrying',
    ]);
    expect(await releaseDueRetries(database, EVERYTHING)).toBe(1);
    expect(await releaseDueRetries(database, EVERYTHING)).toBe(0);
  });

  test('are no business of the sweeper, which would start workflows for them', async () => {
    const database = await seeded();
    const { id } = await addEndpoint(database, WABA, 'https://a.example');
    await addRetries(database, id, { byWorkflow: false, dueInSeconds: [-600] });
    await addRetries(database, id, { byWorkflow: true, dueInSeconds: [-601] });
    const limits = { overdueMs: 60_000, firstOverdueMs: 10_000, againMs: 60_000 };
    const overdue = await takeOverdue(database, { ...limits, ...EVERYTHING });
    const [, second] = await rowsOf(database);
    expect(overdue.map(({ deliveryId }) => deliveryId)).toEqual([second?.id]);
  });

  test('include those whose workflow cannot be started, at the time that they had', async () => {
    const database = await seeded();
    const { id } = await addEndpoint(database, WABA, 'https://a.example');
    await addRetries(database, id, { byWorkflow: true, dueInSeconds: [-1, 60] });
    const ids = (await rowsOf(database)).map((row) => row.id);
    await retryInLoop(database, ids);
    expect((await rowsOf(database)).map(({ byWorkflow }) => byWorkflow)).toEqual([false, false]);
    expect(await releaseDueRetries(database, EVERYTHING)).toBe(1);
    expect((await rowsOf(database)).map(({ state }) => state)).toEqual(['due', 'retrying']);
  });

  test('a retry that its workflow attempts meanwhile is not taken from it', async () => {
    const database = await seeded();
    const { id } = await addEndpoint(database, WABA, 'https://a.example');
    await addRetries(database, id, { byWorkflow: true, dueInSeconds: [-1] });
    await database.raw(`update delivery_queue set state = 'claimed', token = gen_random_uuid(),
                               lease_until = now() + interval '1 minute'`);
    const [before] = await rowsOf(database);
    await retryInLoop(database, [before?.id ?? '']);
    expect(await rowsOf(database)).toEqual([before]);
  });
});

test('the room for retry workflows is counted by endpoint, by tenant and overall, those of workflows only', async () => {
  const database = await seeded();
  const tenants = await query<{ waba: string; tenant: string }>(
    database,
    'select waba_id as waba, tenant_id as tenant from wabas',
  );
  const tenantOf = new Map(tenants.map(({ waba, tenant }) => [waba, tenant]));
  expect(tenantOf.get(WABA)).not.toBe(tenantOf.get(SECOND_WABA));
  const { id: first } = await addEndpoint(database, WABA, 'https://a.example');
  const { id: second } = await addEndpoint(database, WABA, 'https://b.example');
  const { id: other } = await addEndpoint(database, SECOND_WABA, 'https://c.example');
  await addRetries(database, first, { byWorkflow: true, dueInSeconds: [60, 61, 62, 63, 64] });
  await addRetries(database, second, { byWorkflow: true, dueInSeconds: [60] });
  await addRetries(database, second, { byWorkflow: false, dueInSeconds: [60, 61, 62] });
  const room = await database.transaction((trx) => findRetryRoom(trx, [first, second, other], LIMITS));
  const counts = (id: string) => {
    const { openRetries, openRetriesOfTenant, openRetriesOverall } = room.get(id) ?? {};
    return [openRetries, openRetriesOfTenant, openRetriesOverall];
  };
  // Counting at an endpoint ends at one more than its limit.
  expect(counts(first)).toEqual([4, 6, 6]);
  expect(counts(second)).toEqual([1, 6, 6]);
  expect(counts(other)).toEqual([0, 0, 6]);
});
