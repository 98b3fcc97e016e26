import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { findSubscribers } from '../../../src/engine/deliveries/publish.ts';
import { applyOrderScope, applyWantedScopes } from '../../../src/engine/queue/order-scope.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { bodyOf, paymentStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';

const WABA = '900000000000101';
const ACCOUNT = { wabaId: WABA, phoneNumberId: '800000000000111', displayPhoneNumber: '12025550100' };

const OTHER = {
  wabaId: '900000000000202',
  phoneNumberId: '800000000000221',
  displayPhoneNumber: '12025550200',
};

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

describe('order scope', () => {
  test('changes only when nothing of the present one is open, and then holds', async () => {
    const { database, id } = await withEndpoint();
    await takeIn(database, bodyOf(ACCOUNT, [textMessage('wamid.A', 'a'), textMessage('wamid.B', 'b')]));
    await want(database);
    expect(await applyOrderScope(database, id)).toBe(false);
    await database.raw('delete from delivery_queue');
    expect(await applyOrderScope(database, id)).toBe(true);
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

type Scopes = { order_scope: string; wanted_order_scope: string | null };

const scopesOf = async (database: Database) =>
  (await query<Scopes>(database, 'select order_scope, wanted_order_scope from webhook_endpoints'))[0];

const placesOf = (database: Database) =>
  query<{ lane: string; state: string }>(
    database,
    'select lane, state from delivery_queue order by position',
  );

describe('a wanted order scope', () => {
  test.each([
    ['an attempt takes long', `state = 'claimed', lease_until = now() + interval '30 seconds'`],
    ['a retry waits', `state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 hour'`],
    ['an event has no body yet', `state = 'unreleased', released = false`],
    ['the rate limit keeps something waiting', `state = 'due'`],
  ])('stays wanted while %s, and holds once it is through', async (_what, row) => {
    const { database, id } = await withEndpoint();
    await takeIn(database, messages(1, 'STAYS'));
    await execute(database, `update delivery_queue set ${row}`);
    await want(database);
    expect(await applyOrderScope(database, id)).toBe(false);
    expect(await scopesOf(database)).toEqual({ order_scope: 'event', wanted_order_scope: 'endpoint' });
    await execute(database, 'delete from delivery_queue');
    expect(await applyOrderScope(database, id)).toBe(true);
  });

  test.each(['paused', 'disabled'])('moves what waits while the endpoint is %s', async (mode) => {
    const { database, id } = await withEndpoint();
    await takeIn(database, messages(3, 'OFF'));
    await execute(
      database,
      `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 hour'
        where position = (select min(position) from delivery_queue)`,
    );
    await execute(database, `update webhook_endpoints set mode = '${mode}'`);
    await want(database);
    expect(await applyOrderScope(database, id)).toBe(true);
    await takeIn(database, messages(1, 'NEXT'));
    const queued = { lane: 'endpoint', state: 'queued' };
    expect(await placesOf(database)).toEqual([{ lane: 'endpoint', state: 'due' }, queued, queued, queued]);
    await execute(database, `update webhook_endpoints set wanted_order_scope = 'event'`);
    expect(await applyOrderScope(database, id)).toBe(true);
    const places = await placesOf(database);
    expect(new Set(places.map(({ lane }) => lane)).size).toBe(4);
    expect(places.map(({ state }) => state)).toEqual(['due', 'due', 'due', 'due']);
  });

  test.each([
    ['while an attempt is still under way there', `update delivery_queue set state = 'claimed'`],
    [
      'while more waits there than can be moved in a moment',
      `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid)
       select endpoint_id, lane, 'queued', true, event_day, gen_random_uuid(), event_day, event_uuid
         from delivery_queue, generate_series(1, 1001)`,
    ],
  ])('is not applied to a paused endpoint %s', async (_what, statement) => {
    const { database, id } = await withEndpoint();
    await takeIn(database, messages(1, 'OFF'));
    await execute(database, `update webhook_endpoints set mode = 'paused'`);
    await execute(database, statement);
    await want(database);
    expect(await applyOrderScope(database, id)).toBe(false);
  });

  test('is not applied while somebody publishes who may have read the present one, and waits for nobody', async () => {
    const { database, id } = await withEndpoint();
    await want(database);
    await database.transaction(async (trx) => {
      await findSubscribers(trx, [WABA]);
      expect(await applyOrderScope(database, id)).toBe(false);
    });
    await database.transaction(async (trx) => {
      await trx.raw('select 1 from webhook_endpoints for no key update');
      expect(await applyOrderScope(database, id)).toBe(false);
    });
    expect(await applyOrderScope(database, id)).toBe(true);
  });

  test('keeps nobody of another WABA from publishing, not even while it is being applied', async () => {
    const { database, id } = await withEndpoint();
    await addEndpoint(database, OTHER.wabaId, 'https://other.example/hook');
    await want(database);
    const { own } = await database.transaction(async (trx) => {
      expect(await applyOrderScope(trx, id)).toBe(true);
      await takeIn(database, bodyOf(OTHER, [textMessage('wamid.OTHER', 'x')]));
      const own = takeIn(database, messages(1, 'OWN'));
      await expect.poll(() => waitingForLocks(database)).toBe(1);
      return { own };
    });
    await own;
    expect(await placesOf(database)).toEqual([
      { lane: expect.not.stringMatching('endpoint'), state: 'due' },
      { lane: 'endpoint', state: 'due' },
    ]);
  });
});

test('an order scope is applied to an endpoint that gets a steady stream, and each event goes by one that was in force', async () => {
  const { database } = await withEndpoint();
  let over = false;
  const publish = async () => {
    for (let n = 0; !over; n += 1) await takeIn(database, messages(1, `STREAM${n}-`));
  };
  const deliver = async () => {
    for (; !over; await sleep(2)) await execute(database, 'delete from delivery_queue');
  };
  const stream = [publish(), deliver()];
  try {
    for (const scope of ['endpoint', 'event', 'conversation']) {
      await execute(database, `update webhook_endpoints set wanted_order_scope = '${scope}'`);
      const applied = async () => {
        await applyWantedScopes(database);
        return await scopesOf(database);
      };
      const expected = { order_scope: scope, wanted_order_scope: null };
      await expect.poll(applied, { interval: 10 }).toEqual(expected);
    }
  } finally {
    over = true;
    await Promise.all(stream);
  }
});

async function waitingForLocks(database: Database): Promise<number> {
  const rows = await query(
    database,
    `select 1 from pg_locks l join pg_database d on d.oid = l.database
      where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`,
  );
  return rows.length;
}
