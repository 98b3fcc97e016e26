import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { makeEndpointHealth } from '../../../src/engine/deliveries/breaker.ts';
import { TroubleWatch } from '../../../src/engine/deliveries/dispatch/trouble-watch.ts';
import { EndpointLimiter, FIRST_LIMIT } from '../../../src/engine/deliveries/loop/attempt-limits.ts';
import { startEndpointKeeper } from '../../../src/engine/deliveries/loop/endpoint-keeper.ts';
import { startProbing } from '../../../src/engine/endpoint/endpoint-health.ts';
import { claimProbes, releaseClaims } from '../../../src/engine/queue/claim.ts';
import { removeDelivery } from '../../../src/engine/queue/remove.ts';
import { putOffClaim } from '../../../src/engine/queue/settle.ts';
import { stepAside } from '../../../src/engine/queue/sweep.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, messageStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { deliverHeads, settleDelivered } from '../../support/settle-rows.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';
const TOKEN = '00000000-0000-4000-8000-000000000001';

async function withEndpoint() {
  const { database } = await seededWorkerDatabase();
  const { id } = await addEndpoint(database, WABA, 'https://tenant.example/hook');
  return { database, id };
}

const message = (id: string) => bodyOf(ACCOUNT, [textMessage(`wamid.${id}`, 'hello')]);
const ladder = (...steps: string[]) =>
  steps.map((step) => bodyOf(ACCOUNT, [messageStatus('wamid.LADDER', step)]));

async function rowsOf(database: Database): Promise<{ id: string; state: string }[]> {
  return await query(database, 'select delivery_id as id, state from delivery_queue order by position');
}

const probes = async (database: Database) =>
  claimProbes(database, { limit: 20, token: TOKEN, leaseMs: 60_000 });

test('a retry that its run is about to make keeps no probe away', async () => {
  const { database, id } = await withEndpoint();
  await takeIn(database, message('P1'));
  await database.raw(
    `update delivery_queue set state = 'retrying', run = 'room', attempts = 9, next_attempt_at = now()`,
  );
  await takeIn(database, message('P2'));
  await database.transaction((trx) => startProbing(trx, id, { probeAfterMs: 0, reason: 'down' }));
  expect(await probes(database)).toHaveLength(1);
});

test('a delivery that is dropped while the one before it is settled leaves no lane without a head', async () => {
  const { database } = await withEndpoint();
  await takeIn(database, ...ladder('sent', 'delivered', 'read'));
  const [head, second] = await rowsOf(database);
  const claim = { deliveryId: head?.id ?? '', token: TOKEN };
  await database.raw(
    `update delivery_queue set state = 'claimed', token = '${TOKEN}', lease_until = now() + interval '1 minute'
      where delivery_id = '${head?.id}'`,
  );
  await database.transaction(async (trx) => {
    expect(await removeDelivery(trx, second?.id ?? '', 'not wanted')).toBe('removed');
    // It is recorded by a later group: no other lane waits for the drop.
    expect(await settleDelivered(database, [claim])).toEqual([]);
  });
  expect(await settleDelivered(database, [claim])).toEqual([claim.deliveryId]);
  expect((await rowsOf(database)).map(({ state }) => state)).toEqual(['due']);
});

test('a delivery that becomes the head while it is to be dropped is dropped, and the next one goes', async () => {
  const { database } = await withEndpoint();
  await takeIn(database, ...ladder('sent', 'delivered', 'read'));
  const [head, second, third] = await rowsOf(database);
  let dropping: Promise<unknown> = Promise.resolve();
  await database.transaction(async (trx) => {
    await trx.raw(`select 1 from delivery_queue where delivery_id = '${head?.id}' for update`);
    dropping = database.transaction((other) => removeDelivery(other, second?.id ?? '', 'not wanted'));
    await waitsForLock(database);
    await deliverHeads(trx, [head?.id ?? '']);
  });
  expect(await dropping).toBe('removed');
  expect(await rowsOf(database)).toEqual([{ id: third?.id, state: 'due' }]);
});

async function waitsForLock(database: Database): Promise<void> {
  await eventually('somebody waits for the lock', async () => {
    const waiting = await query(
      database,
      `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return waiting.length > 0;
  });
}

test('the time during which an endpoint took nothing does not count against the block limit', async () => {
  const { database } = await withEndpoint();
  await takeIn(database, ...ladder('sent', 'delivered'));
  await database.raw(
    `update delivery_queue set state = 'retrying', attempts = 1, first_failed_at = now() - interval '2 days',
            next_attempt_at = now() + interval '1 minute', blocks = blocks_now(endpoint_id, lane, event_day, event_uuid) where state = 'due'`,
  );
  await database.raw(
    `update webhook_endpoints set block_limit_seconds = 3600;
     update endpoint_health set mode_changed_at = now() - interval '10 minutes'`,
  );
  const step = () => stepAside(database, { defaultSeconds: 0, limit: 10 });
  expect(await step()).toBe(0);
  await database.raw(`update endpoint_health set mode_changed_at = now() - interval '2 hours'`);
  expect(await step()).toBe(1);
});

test('an attempt that is due is made before its delivery steps aside, unless it is overdue', async () => {
  const { database } = await withEndpoint();
  await takeIn(database, ...ladder('sent', 'delivered'));
  await database.raw(
    `update delivery_queue set state = 'retrying', attempts = 1, first_failed_at = now() - interval '2 hours',
            next_attempt_at = now() - interval '1 second', blocks = blocks_now(endpoint_id, lane, event_day, event_uuid) where state = 'due'`,
  );
  await database.raw(
    `update webhook_endpoints set block_limit_seconds = 3600;
     update endpoint_health set mode_changed_at = now() - interval '2 days'`,
  );
  const step = () => stepAside(database, { defaultSeconds: 0, limit: 10 });
  expect(await step()).toBe(0);
  await database.raw(
    `update delivery_queue set next_attempt_at = now() - interval '2 minutes' where state = 'retrying'`,
  );
  expect(await step()).toBe(1);
});

test('a claim that is released without an attempt has not failed, and one that is put off after an attempt has', async () => {
  const { database } = await withEndpoint();
  await takeIn(database, message('G'));
  const [row] = await rowsOf(database);
  const claim = { deliveryId: row?.id ?? '', token: randomUUID() };
  const claimIt = () =>
    execute(
      database,
      `update delivery_queue set state = 'claimed', token = :token, lease_until = now() + interval '1 minute'`,
      { token: claim.token },
    );
  const failedAt = async () =>
    (await query<{ at: Date | null }>(database, 'select first_failed_at as at from delivery_queue'))[0]?.at;
  await claimIt();
  await releaseClaims(database, claim.token, [claim.deliveryId]);
  expect(await failedAt()).toBeNull();
  const putOff = (token: string) =>
    putOffClaim(database, { ...claim, token, attempts: 1, delayMs: 60_000, run: null });
  await claimIt();
  expect(await putOff(randomUUID())).toBe(false);
  expect(await putOff(claim.token)).toBe(true);
  expect(await failedAt()).toBeInstanceOf(Date);
  expect(await putOff(claim.token)).toBe(false);
});

test('a limit that a tenant takes away is gone a moment later', async () => {
  const { database, id } = await withEndpoint();
  await database.raw(
    'update webhook_endpoints set rate_limit_per_second = 1, max_in_flight = 1, updated_at = now()',
  );
  const limiter = new EndpointLimiter();
  const keeper = startEndpointKeeper({
    isLeader: () => true,
    database,
    health: makeEndpointHealth(),
    limiter,
    logger: silentLogger,
    retryScheduleMs: [5_000],
    disableAfterHours: 120,
    troubleWatch: new TroubleWatch(),
  });
  onTestFinished(() => keeper.stop());
  await eventually('the limit is known', () => limiter.free(id), { is: 1 });
  await database.raw(
    'update webhook_endpoints set rate_limit_per_second = null, max_in_flight = null, updated_at = now()',
  );
  await eventually('the limit is gone', async () => {
    await sleep(100);
    return limiter.free(id) === FIRST_LIMIT;
  });
});
