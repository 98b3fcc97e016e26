import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { findSubscribers } from '../../../src/engine/deliveries/publish.ts';
import type { OrderScope } from '../../../src/engine/endpoint/endpoint-settings.ts';
import { lockLanes } from '../../../src/engine/queue/order-scope.ts';
import { updateEndpoint } from '../../../src/features/endpoints/endpoints.ts';
import { queueReplayPage } from '../../../src/features/replays/replay-steps.ts';
import { startReplay, switchReplay } from '../../../src/features/replays/replays.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { isLockTimeout } from '../../../src/platform/postgres/error-class.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, paymentStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, testSecretBox } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { publish, settleLive } from '../replays/replay-fixtures.ts';

const WABA = '900000000000101';

const OTHER = {
  wabaId: '900000000000202',
  phoneNumberId: '800000000000221',
  displayPhoneNumber: '12025550200',
};

async function withEndpoint() {
  const { database } = await seededWorkerDatabase();
  const { id } = await addEndpoint(database, WABA, 'https://tenant.example/hook');
  return { database, id };
}

const messages = (count: number, name: string) =>
  bodyOf(
    ACCOUNT,
    Array.from({ length: count }, (_, n) => textMessage(`wamid.${name}${n}`, 'x')),
  );

/** As the API, the portal and the commands do. */
async function change(database: Database, id: string, orderScope: OrderScope) {
  const urlRules = { allowHttp: false, guard: makeAddressGuard({ allowCidrs: [] }), resolve: async () => [] };
  const tools = { database, secretBox: testSecretBox, urlRules, maxTimeoutMs: 15_000, actor: SYSTEM };
  return await updateEndpoint(tools, WABA, id, { orderScope });
}

const scopeOf = async (database: Database) =>
  (await query<{ scope: string }>(database, 'select order_scope as scope from webhook_endpoints'))[0]?.scope;

const placesOf = (database: Database) =>
  query<{ lane: string; state: string }>(
    database,
    'select lane, state from delivery_queue order by position',
  );

const PENDING = { code: 'deliveries_pending', param: 'orderScope' };

describe('order scope', () => {
  test('changes only while nothing is pending, and then holds', async () => {
    const { database, id } = await withEndpoint();
    await takeIn(database, messages(2, 'A'));
    const refusal = await change(database, id, 'endpoint').catch((error) => error);
    expect(refusal).toMatchObject(PENDING);
    expect(refusal.message).toContain('2 deliveries are pending');
    expect(await scopeOf(database)).toBe('event');
    await database.raw('delete from delivery_queue');
    expect(await change(database, id, 'endpoint')).toMatchObject({ orderScope: 'endpoint' });
    await takeIn(database, messages(2, 'B'));
    expect(await placesOf(database)).toEqual([
      { lane: 'endpoint', state: 'due' },
      { lane: 'endpoint', state: 'queued' },
    ]);
    await expect(change(database, id, 'event')).rejects.toMatchObject(PENDING);
    expect(await change(database, id, 'endpoint')).toMatchObject({ orderScope: 'endpoint' });
  });

  test('counts no more than it needs to', async () => {
    const { database, id } = await withEndpoint();
    await takeIn(database, messages(1, 'MANY'));
    await execute(
      database,
      `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid)
       select endpoint_id, lane, 'queued', true, event_day, gen_random_uuid(), event_day, event_uuid
         from delivery_queue, generate_series(1, 2000)`,
    );
    const counted = await database.transaction((trx) => lockLanes(trx, { wabaId: WABA, id }));
    expect(counted).toEqual({ count: 1_000, more: true });
  });

  test.each([
    ['an attempt takes long', `state = 'claimed', lease_until = now() + interval '30 seconds'`],
    ['a retry waits', `state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 hour'`],
    ['an event has no body yet', `state = 'unreleased', released = false`],
    ['the rate limit keeps something waiting', `state = 'due'`],
  ])('does not change while %s, nor while the endpoint is paused then', async (_what, row) => {
    const { database, id } = await withEndpoint();
    await takeIn(database, messages(1, 'STAYS'));
    await execute(database, `update delivery_queue set ${row}`);
    await expect(change(database, id, 'endpoint')).rejects.toMatchObject(PENDING);
    await execute(database, `update endpoint_health set mode = 'paused'`);
    await expect(change(database, id, 'endpoint')).rejects.toMatchObject(PENDING);
    expect(await scopeOf(database)).toBe('event');
    await execute(database, 'delete from delivery_queue');
    expect(await change(database, id, 'endpoint')).toMatchObject({ orderScope: 'endpoint' });
  });

  test('does not change while deliveries of a replay are pending, even of a paused one', async () => {
    const { database, id } = await withEndpoint();
    await publish(database, WABA, { count: 3, keys: 1 });
    await settleLive(database, 'delivered');
    const tools = { database, actor: SYSTEM };
    const { replayId } = await startReplay(tools, WABA, { states: ['delivered'] }, 'test');
    const page = { wabaId: WABA, replayId, endpointId: id };
    while (((await queueReplayPage(database, page))?.queuedIds.length ?? 0) > 0);
    await expect(change(database, id, 'conversation')).rejects.toMatchObject(PENDING);
    await switchReplay(tools, WABA, replayId, 'pause');
    await expect(change(database, id, 'conversation')).rejects.toMatchObject(PENDING);
    await switchReplay(tools, WABA, replayId, 'cancel');
    expect(await change(database, id, 'conversation')).toMatchObject({ orderScope: 'conversation' });
  });

  test('does not change while a publisher or a replay that has read the present one is not done', async () => {
    const { database, id } = await withEndpoint();
    await publish(database, WABA, { count: 1, keys: 1 });
    await settleLive(database, 'delivered');
    const { replayId } = await startReplay(
      { database, actor: SYSTEM },
      WABA,
      { states: ['delivered'] },
      'test',
    );
    const page = { wabaId: WABA, replayId, endpointId: id };
    const refused = async () => {
      await expect(change(database, id, 'endpoint')).rejects.toSatisfy(isLockTimeout);
      expect(await scopeOf(database)).toBe('event');
    };
    await database.transaction(async (trx) => {
      await findSubscribers(trx, [WABA]);
      await refused();
    });
    const transaction: Database['transaction'] = (work) =>
      database.transaction(async (trx) => {
        const result = await work(trx);
        await refused();
        return result;
      });
    await queueReplayPage(Object.create(database, { transaction: { value: transaction } }), page);
    await expect(change(database, id, 'endpoint')).rejects.toMatchObject(PENDING);
    await execute(database, 'delete from delivery_queue');
    expect(await change(database, id, 'endpoint')).toMatchObject({ orderScope: 'endpoint' });
  });

  test('is read anew by a publisher that came while it changed, and by no other WABA later than before', async () => {
    const { database, id } = await withEndpoint();
    await addEndpoint(database, OTHER.wabaId, 'https://other.example/hook');
    const { own } = await database.transaction(async (trx) => {
      expect(await lockLanes(trx, { wabaId: WABA, id })).toEqual({ count: 0, more: false });
      const changed = { scope: 'endpoint', id };
      await query(
        trx,
        'update webhook_endpoints set order_scope = :scope, version = version + 1 where id = :id',
        changed,
      );
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

test('an order scope changes at an endpoint that gets a steady stream, in a moment in which nothing is pending', async () => {
  const { database, id } = await withEndpoint();
  let over = false;
  const stream = async () => {
    for (let n = 0; !over; n += 1) {
      await takeIn(database, messages(1, `STREAM${n}-`));
      await execute(database, 'delete from delivery_queue');
    }
  };
  const streaming = stream();
  try {
    for (const scope of ['endpoint', 'event', 'conversation'] as const) {
      const changed = () =>
        change(database, id, scope).then(
          () => true,
          () => false,
        );
      await expect.poll(changed, { interval: 10 }).toBe(true);
      expect(await scopeOf(database)).toBe(scope);
      await sleep(5);
    }
  } finally {
    over = true;
    await streaming;
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
