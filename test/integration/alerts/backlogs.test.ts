import { beforeEach, expect, test } from 'vitest';
import { oldestDueAt } from '../../../src/engine/deliveries/backlog.ts';
import { addEndpointCounts } from '../../../src/engine/endpoint/endpoint-health.ts';
import { enableEndpoint, holdEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { publish } from '../replays/replay-fixtures.ts';
import { endpointId, look, operator, seen as seenBy, store, tenant, useAlertStore } from './alert-store.ts';

useAlertStore();

/** Two deliveries that have been due for hours at an endpoint that has been open for longer. */
beforeEach(async () => {
  const { database } = store;
  await database.raw(`update endpoint_health set mode_changed_at = now() - interval '1 day'`);
  await publish(database, tenant.wabaId, { count: 2, keys: 2 });
  await dueFor(600);
});

const dueFor = (minutes: number) =>
  execute(store.database, `update delivery_queue set created_at = now() - :minutes * interval '1 minute'`, {
    minutes,
  });

async function seen(): Promise<string[]> {
  await look();
  return await seenBy(operator);
}

const BOTH = () => ['delivery_backlog ', `endpoint_backlog ${endpointId}`];

test('what waited at an endpoint that was paused is due since it was enabled', async () => {
  const { database } = store;
  expect(await seen()).toEqual(BOTH());
  await holdEndpoint({ database, actor: SYSTEM }, tenant.wabaId, {
    id: endpointId,
    mode: 'paused',
    reason: 'x',
  });
  await enableEndpoint({ database, actor: SYSTEM }, tenant.wabaId, {
    id: endpointId,
    waiting: 'send',
    by: 'x',
  });
  expect(await seen()).toEqual([]);
  await database.raw(`update endpoint_health set mode_changed_at = now() - interval '16 minutes'`);
  expect(await seen()).toEqual(BOTH());
});

test('what was attempted before and is due again is no backlog; the first attempt behind it is', async () => {
  const { database } = store;
  await execute(database, 'update delivery_queue set attempts = 1');
  expect(await oldestDueAt(database)).toBeNull();
  expect(await seen()).toEqual([]);
  await database.raw(
    `update delivery_queue set attempts = 0 where position = (select max(position) from delivery_queue)`,
  );
  expect(await seen()).toEqual(BOTH());
});

test('a backlog that swings about its limit is told once, and is over below half of it', async () => {
  const { database } = store;
  const set = `update wabas set operations_url = 'https://ops.example/alerts' where waba_id = :wabaId`;
  await execute(database, set, { wabaId: tenant.wabaId });
  for (const minutes of [16, 14, 16, 14, 16, 8]) {
    await dueFor(minutes);
    expect(await seen(), `${minutes} minutes`).toEqual(BOTH());
  }
  await dueFor(7);
  expect(await seen()).toEqual(['delivery_backlog ']);
  await dueFor(4);
  expect(await seen()).toEqual([]);
  await dueFor(9);
  expect(await seen()).toEqual([]);
  const told = await query<{ body: Buffer }>(database, 'select body from alert_notices order by created_at');
  expect(told.map(({ body }) => JSON.parse(body.toString()).state)).toEqual(['opened', 'resolved']);
});

test.each(['rate_limit_per_second = 1', 'max_in_flight = 1', `order_scope = 'endpoint'`])(
  'an endpoint with %s that keeps taking deliveries is a matter of its tenant',
  async (limit) => {
    const { database } = store;
    await database.raw(`update webhook_endpoints set ${limit}`);
    expect(await seen()).toEqual(BOTH());
    const counts = { endpointId, successes: 1, failures: 0, failedDeliveries: 0, totalMs: 9 };
    await database.transaction((trx) => addEndpointCounts(trx, [counts]));
    expect(await oldestDueAt(database)).toBeNull();
    expect(await seen()).toEqual([`endpoint_backlog ${endpointId}`]);
    // When nothing gets there any more it is the operators' again.
    await database.raw(`update endpoint_minutes set minute = minute - interval '5 minutes'`);
    expect(await seen()).toEqual(BOTH());
  },
);

test('an endpoint without a limit that falls behind is a matter of operators too', async () => {
  const counts = { endpointId, successes: 1, failures: 0, failedDeliveries: 0, totalMs: 9 };
  await store.database.transaction((trx) => addEndpointCounts(trx, [counts]));
  expect(await seen()).toEqual(BOTH());
});
