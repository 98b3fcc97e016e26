import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/database.ts';
import { lockPublishing } from '../../../src/database/locks.ts';
import { execute, query } from '../../../src/database/sql.ts';
import { applyWantedScope } from '../../../src/deliveries/queue/order-scope.ts';
import { bodyOf, paymentStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';
const ACCOUNT = { wabaId: WABA, phoneNumberId: '800000000000111', displayPhoneNumber: '12025550100' };

async function withEndpoint() {
  const { database } = await testWorkerDatabase();
  await seedFixtureAccounts(database);
  const { id } = await addEndpoint(database, WABA, 'https://tenant.example/hook');
  return { database, id };
}

const messages = (count: number, name: string) =>
  bodyOf(
    ACCOUNT,
    Array.from({ length: count }, (_, n) => textMessage(`wamid.${name}${n}`, 'x')),
  );

const want = (database: Database) =>
  execute(database, `update webhook_endpoints set wanted_order_scope = 'endpoint'`);

/** Asks for the change while somebody publishes: who would stop publishing waits here for ever. */
const applyBesidePublisher = (database: Database, id: string) =>
  database.transaction(async (trx) => {
    await lockPublishing(trx);
    return await applyWantedScope(database, id);
  });

describe('order scope', () => {
  test('changes only when nothing of the present one is open, and then holds', async () => {
    const { database, id } = await withEndpoint();
    await takeIn(database, bodyOf(ACCOUNT, [textMessage('wamid.A', 'a'), textMessage('wamid.B', 'b')]));
    await want(database);
    expect(await applyWantedScope(database, id)).toBe(false);
    await database.raw('delete from delivery_queue');
    expect(await applyWantedScope(database, id)).toBe(true);
    await takeIn(database, bodyOf(ACCOUNT, [textMessage('wamid.C', 'c'), textMessage('wamid.D', 'd')]));
    const rows = await query<{ lane: string; state: string }>(
      database,
      'select lane, state from delivery_queue order by position',
    );
    expect(rows).toEqual([
      { lane: 'endpoint', state: 'due' },
      { lane: 'endpoint', state: 'queued' },
    ]);
  });

  test('conversation: messages, and statuses of messages to the same customer, share a lane', async () => {
    const { database } = await withEndpoint();
    await database.raw(`update webhook_endpoints set order_scope = 'conversation'`);
    await takeIn(
      database,
      bodyOf(ACCOUNT, [textMessage('wamid.E', 'e')]),
      bodyOf(ACCOUNT, [textMessage('wamid.F', 'f')]),
    );
    const [first, second] = await query<{ lane: string; state: string }>(
      database,
      'select lane, state from delivery_queue order by position',
    );
    expect(first?.lane).toMatch(/^conversation\/\d+$/);
    expect(second).toEqual({ lane: first?.lane, state: 'queued' });
  });

  test('conversation: payments of a customer share the lane of the customer’s messages', async () => {
    const { database } = await withEndpoint();
    await database.raw(`update webhook_endpoints set order_scope = 'conversation'`);
    await takeIn(
      database,
      bodyOf(ACCOUNT, [textMessage('wamid.G', 'g')]),
      bodyOf(ACCOUNT, [paymentStatus('wamid.P', 'order-1', 'captured')]),
    );
    const lanes = await query<{ lane: string; type: string }>(
      database,
      `select q.lane, ev.event_type as type from delivery_queue q join events ev on ev.id = q.event_uuid order by position`,
    );
    expect(lanes).toEqual([
      { lane: expect.stringMatching(/^conversation\//), type: 'message' },
      { lane: lanes[0]?.lane, type: 'payment' },
    ]);
  });
});

describe('a wanted order scope stops nobody’s publishing', () => {
  test.each(['paused', 'disabled', 'probing'])(
    'while the endpoint is %s, and holds once nothing waits there',
    async (mode) => {
      const { database, id } = await withEndpoint();
      await takeIn(database, messages(1, 'OFF'));
      await execute(database, `update webhook_endpoints set mode = '${mode}'`);
      await want(database);
      expect(await applyBesidePublisher(database, id)).toBe(false);
      await execute(database, 'delete from delivery_queue');
      expect(await applyWantedScope(database, id)).toBe(true);
    },
  );

  test.each([
    ['an attempt takes long', `state = 'claimed', lease_until = now() + interval '30 seconds'`],
    ['a retry waits', `state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 hour'`],
    ['an event has no body yet', `state = 'unreleased', released = false`],
    ['the rate limit keeps something waiting', `state = 'due'`],
  ])('while %s, and holds once it is through', async (_what, row) => {
    const { database, id } = await withEndpoint();
    await takeIn(database, messages(1, 'STAYS'));
    await execute(database, `update delivery_queue set ${row}`);
    await want(database);
    expect(await applyBesidePublisher(database, id)).toBe(false);
    await execute(database, 'delete from delivery_queue');
    expect(await applyWantedScope(database, id)).toBe(true);
  });

  test('while more waits than can leave in a moment, be it behind one head', async () => {
    const { database, id } = await withEndpoint();
    await execute(database, `update webhook_endpoints set order_scope = 'conversation'`);
    await takeIn(database, messages(120, 'LONG'));
    const heads = await query(database, `select 1 from delivery_queue where state <> 'queued'`);
    expect(heads).toHaveLength(1);
    await want(database);
    expect(await applyBesidePublisher(database, id)).toBe(false);
  });

  test('while another process tries the same', async () => {
    const { database, id } = await withEndpoint();
    await want(database);
    const stop = Promise.withResolvers<void>();
    const publisher = database.transaction(async (trx) => {
      await lockPublishing(trx);
      await stop.promise;
    });
    const first = applyWantedScope(database, id);
    try {
      await expect.poll(() => waitingForLocks(database), { timeout: 8_000 }).toBe(1);
      expect(await applyWantedScope(database, id)).toBe(false);
    } finally {
      stop.resolve();
      await publisher;
    }
    expect(await first).toBe(true);
  });
});

test('an order scope is applied to an endpoint that gets a steady stream and always has something open', async () => {
  const { database, id } = await withEndpoint();
  await takeIn(database, messages(1, 'FIRST'));
  await want(database);
  let publishingSince = performance.now();
  let over = false;
  const publish = async () => {
    for (let n = 0; !over; n += 1) {
      publishingSince = performance.now();
      await takeIn(database, messages(1, `STREAM${n}-`));
    }
  };
  // The endpoint takes all but the newest, so that something is open unless publishing stands still.
  const deliver = async () => {
    for (; !over; await sleep(5)) {
      const isStill = performance.now() - publishingSince > 60;
      await execute(
        database,
        `delete from delivery_queue where position < (select max(position) from delivery_queue) or ${isStill}`,
      );
    }
  };
  const stream = [publish(), deliver()];
  try {
    await expect.poll(() => applyWantedScope(database, id), { timeout: 30_000 }).toBe(true);
  } finally {
    over = true;
    await Promise.all(stream);
  }
  const [row] = await query(database, 'select order_scope, wanted_order_scope from webhook_endpoints');
  expect(row).toEqual({ order_scope: 'endpoint', wanted_order_scope: null });
});

async function waitingForLocks(database: Database): Promise<number> {
  const rows = await query(
    database,
    `select 1 from pg_locks l join pg_database d on d.oid = l.database
      where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`,
  );
  return rows.length;
}
