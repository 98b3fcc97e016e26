import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { lowestUuidAt } from '../../../src/platform/public-ids.ts';
import { checkSelection } from '../../../src/replays/replay-input.ts';
import { queueReplayPage, readReplayPage } from '../../../src/replays/replay-steps.ts';
import { findReplay } from '../../../src/replays/replay-store.ts';
import { countReplay, replayOf, startReplay, switchReplay } from '../../../src/replays/replays.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import {
  type OperationsStack,
  OTHER_WABA,
  startOperationsStack,
  WABA,
} from '../endpoints/operations-stack.ts';
import {
  clearDeliveries,
  deliverReplays,
  originalIds,
  publish,
  queuedStates,
  settleLive,
} from './replay-fixtures.ts';

let stack: OperationsStack;
let endpointId: string;

beforeAll(async () => {
  stack = await startOperationsStack({ maxOpenPerEndpoint: 1_000 });
});
afterAll(() => stack?.stop());

beforeEach(async () => {
  await clearDeliveries(stack.database);
  endpointId = (await addEndpoint(stack.database, WABA, 'https://shop.example/hook')).id;
});

const tools = () => ({ database: stack.database, actor: SYSTEM });
const state = async (replayId: string) => (await replayOf(tools(), WABA, replayId)).state;
const ended = (replayId: string, wanted = 'done') =>
  eventually(`replay ${replayId} is ${wanted}`, async () => (await state(replayId)) === wanted);

describe('a replay sends the same events again', () => {
  test('as new deliveries of the same events, in the order of each key, over pages and within a millisecond', async () => {
    const { database } = stack;
    await publish(database, WABA, { count: 1_400, keys: 90 });
    await settleLive(database, 'failed');
    const counted = await countReplay(tools(), WABA, { states: ['failed'] });
    expect(counted).toMatchObject({
      deliveries: 1_400,
      byType: { message: 1_400 },
      byEndpoint: { [endpointId]: 1_400 },
    });
    const { replayId, total } = await startReplay(tools(), WABA, { states: ['failed'] }, 'test');
    expect(total).toBe(1_400);
    const sent: Awaited<ReturnType<typeof deliverReplays>> = [];
    await eventually('all sent', async () => {
      sent.push(...(await deliverReplays(database)));
      return sent.length >= 1_400;
    });
    await ended(replayId);
    expect(await queuedStates(database)).toEqual({});
    const sequences = new Map<string, number[]>();
    for (const { lane, sequence } of sent) sequences.set(lane, [...(sequences.get(lane) ?? []), sequence]);
    expect(sequences.size).toBe(90);
    for (const [lane, seen] of sequences) {
      expect([lane, ...seen]).toEqual([lane, ...seen.map((_, index) => index + 1)]);
    }
    const pairs = await query<{ same: boolean; fresh: boolean }>(
      database,
      `select (r.event_uuid, r.event_day, r.endpoint_id, r.waba_id) = (o.event_uuid, o.event_day, o.endpoint_id, o.waba_id) as same,
              r.id <> o.id as fresh
         from deliveries r join deliveries o on o.id = r.replay_of where r.replay_id = ?`,
      [replayId],
    );
    expect(pairs).toHaveLength(1_400);
    expect(pairs.every(({ same, fresh }) => same && fresh)).toBe(true);
    expect((await replayOf(tools(), WABA, replayId)).outcomes).toMatchObject({
      delivered: 1_400,
      pending: 0,
    });
    expect(await query(database, 'select 1 from workflow_tasks')).toEqual([]);
  });

  test('the same once over, however many work on one replay at a time', async () => {
    const { database } = stack;
    await publish(database, WABA, { count: 1_200, keys: 40 });
    await settleLive(database, 'delivered');
    const { replayId } = await startReplay(tools(), WABA, { endpointId }, 'test');
    const ids = { wabaId: WABA, replayId, endpointId };
    await Promise.all(Array.from({ length: 8 }, () => queueReplayPage(database, ids)));
    await ended(replayId);
    const [row] = await query<{ n: number; originals: number }>(
      database,
      'select count(*)::integer as n, count(distinct replay_of)::integer as originals from deliveries where replay_id = ?',
      [replayId],
    );
    expect(row).toEqual({ n: 1_200, originals: 1_200 });
    expect(await deliverReplays(database)).toHaveLength(1_200);
  });

  test('in lanes of its own: live deliveries of the same keys neither wait for it nor hold it up', async () => {
    const { database } = stack;
    await publish(database, WABA, { count: 20, keys: 2 });
    await settleLive(database, 'failed');
    await publish(database, WABA, { count: 20, keys: 2 });
    const { replayId } = await startReplay(tools(), WABA, { states: ['failed'] }, 'test');
    await ended(replayId);
    const heads = await query<{ lane: string; replay: boolean }>(
      database,
      `select lane, replay from delivery_queue where state = 'due' order by replay, lane`,
    );
    expect(heads).toEqual([
      { lane: 'key-0', replay: false },
      { lane: 'key-1', replay: false },
      { lane: `replay/${replayId}/key-0`, replay: true },
      { lane: `replay/${replayId}/key-1`, replay: true },
    ]);
    expect(await deliverReplays(database)).toHaveLength(20);
  });

  test('one after the other at an endpoint whose scope is the endpoint', async () => {
    const { database } = stack;
    await execute(database, `update webhook_endpoints set order_scope = 'endpoint'`);
    await publish(database, WABA, { count: 30, keys: 30 });
    await settleLive(database, 'failed');
    const { replayId } = await startReplay(tools(), WABA, { states: ['failed'] }, 'test');
    await ended(replayId);
    expect(await queuedStates(database)).toEqual({ due: 1, queued: 29 });
  });
});

test('cancelled around midnight, it takes out what processes with another clock have queued', async () => {
  const { database } = stack;
  await publish(database, WABA, { count: 5, keys: 5 });
  await settleLive(database, 'failed');
  const { replayId } = await startReplay(tools(), WABA, { states: ['failed'] }, 'test');
  await ended(replayId);
  await execute(database, 'update deliveries set day = day - 1 where replay_id = ?', [replayId]);
  await execute(database, 'update delivery_queue set delivery_day = delivery_day - 1 where replay');
  expect((await replayOf(tools(), WABA, replayId)).outcomes.pending).toBe(5);
  await switchReplay(tools(), WABA, replayId, 'cancel');
  await eventually('nothing is queued', async () => Object.keys(await queuedStates(database)).length, {
    is: 0,
  });
  expect((await replayOf(tools(), WABA, replayId)).outcomes.dropped).toBe(5);
});

describe('what an endpoint takes now and never had', () => {
  test('is sent by the filter not_sent, in the order of each key, once', async () => {
    const { database } = stack;
    await execute(database, 'delete from webhook_endpoints');
    await publish(database, WABA, { count: 1_200, keys: 100 });
    await publish(database, WABA, { count: 3, keys: 3, type: 'status' });
    const newer = await addEndpoint(database, WABA, 'https://newer.example/hook', ['message']);
    const count = async (selection: Parameters<typeof countReplay>[2]) =>
      (await countReplay(tools(), WABA, selection)).byEndpoint;
    expect(await count({ states: ['failed', 'dropped', 'delivered'] })).toEqual({});
    expect(await count({ from: new Date(0) })).toEqual({ [newer.id]: 1_200 });
    expect(await count({ states: ['not_sent'], eventTypes: ['status'] })).toEqual({});
    const { replayId } = await startReplay(
      tools(),
      WABA,
      { states: ['not_sent'], endpointId: newer.id },
      'test',
    );
    const last = new Map<string, number>();
    const sent: string[] = [];
    await eventually('all are delivered', async () => {
      for (const { lane, sequence, deliveryId } of await deliverReplays(database)) {
        expect(sequence).toBe((last.get(lane) ?? 0) + 1);
        last.set(lane, sequence);
        sent.push(deliveryId);
      }
      return sent.length === 1_200;
    });
    await ended(replayId);
    expect(await replayOf(tools(), WABA, replayId)).toMatchObject({
      ...{ total: 1_200, queued: 1_200, skipped: 0 },
      outcomes: { delivered: 1_200 },
    });
    expect(await count({ states: ['not_sent'] })).toEqual({});
    // From then on it is an original, that can be sent again as others can.
    expect(await count({ states: ['delivered'] })).toEqual({ [newer.id]: 1_200 });
  });

  test('is looked for among so many events at a time, however many the endpoint has had', async () => {
    const { database } = stack;
    const noonMs = Math.floor(Date.now() / 86_400_000) * 86_400_000 - 43_200_000;
    await execute(
      database,
      `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body)
       select to_timestamp(:noonMs / 1000.0)::date, cast(lpad(to_hex(cast(:noonMs as bigint) + n), 12, '0') || '70008000000000000000' as uuid),
              :waba, 1, '1', 'message', 'e' || n, 'e' || n, 1, ''
         from generate_series(1, 12000) as n`,
      { noonMs, waba: WABA },
    );
    await execute(
      database,
      `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid, state)
       select day, id, waba_id, ?, day, id, 'delivered' from events where phone_number_id = '1'
        order by id limit 11999`,
      [endpointId],
    );
    const selection = checkSelection({ states: ['not_sent'] }, new Date());
    const toId = lowestUuidAt(noonMs + 43_200_000);
    const found: number[] = [];
    for (let fromId = lowestUuidAt(noonMs); fromId < toId; ) {
      const range = { endpointId, fromId, toId };
      const page = await database.transaction((trx) => readReplayPage(trx, WABA, selection, range, 500));
      found.push(page.deliveries.length);
      fromId = page.nextId;
    }
    expect(found).toEqual([0, 0, 1]);
  });

  test('stands in the order of its key beside what the endpoint had', async () => {
    const { database } = stack;
    const one = { count: 1, keys: 1 };
    await publish(database, WABA, one);
    await settleLive(database, 'delivered');
    await execute(database, `update webhook_endpoints set event_types = '{status}'`);
    await publish(database, WABA, one);
    await execute(database, 'update webhook_endpoints set event_types = null');
    await publish(database, WABA, one);
    await settleLive(database, 'failed');
    const { replayId } = await startReplay(tools(), WABA, { endpointId }, 'test');
    await ended(replayId);
    expect((await deliverReplays(database)).map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  });
});

describe('what is selected', () => {
  test('open deliveries, unreleased events and endpoints that are gone are passed over and counted', async () => {
    const { database } = stack;
    const gone = await addEndpoint(database, WABA, 'https://gone.example/hook');
    await publish(database, WABA, { count: 10, keys: 10 });
    await settleLive(database, 'delivered');
    await execute(database, 'delete from webhook_endpoints where id = ?', [gone.id]);
    await execute(database, `update events set body = null where event_id = 'key-3'`);
    await publish(database, WABA, { count: 4, keys: 4, type: 'status' });
    const selection = { from: new Date(0) };
    expect(await countReplay(tools(), WABA, selection)).toMatchObject({
      deliveries: 9,
      skipped: { pending: 4, noBody: 1, endpointGone: 10 },
    });
    const { replayId } = await startReplay(tools(), WABA, selection, 'test');
    await ended(replayId);
    expect(await replayOf(tools(), WABA, replayId)).toMatchObject({ total: 24, queued: 9, skipped: 15 });
  });

  test('filters narrow down by endpoint, time, type and state; replays are selected by id only', async () => {
    const { database } = stack;
    const second = await addEndpoint(database, WABA, 'https://second.example/hook', ['status']);
    await publish(database, WABA, { count: 3, keys: 3 });
    await settleLive(database, 'failed');
    await new Promise((resolve) => setTimeout(resolve, 20));
    const middle = new Date();
    await publish(database, WABA, { count: 2, keys: 2, type: 'status' });
    await settleLive(database, 'delivered');
    const count = async (selection: Parameters<typeof countReplay>[2]) =>
      (await countReplay(tools(), WABA, selection)).deliveries;
    expect(await count({ to: middle })).toBe(3);
    expect(await count({ from: middle })).toBe(4);
    expect(await count({ from: middle, endpointId: second.id })).toBe(2);
    expect(await count({ eventTypes: ['message'] })).toBe(3);
    expect(await count({ states: ['delivered'] })).toBe(4);
    expect(await count({ states: ['delivered'], endpointId, eventTypes: ['message'] })).toBe(0);
    const { replayId } = await startReplay(tools(), WABA, { eventTypes: ['message'] }, 'test');
    await ended(replayId);
    const [again] = await deliverReplays(database);
    expect(await count({ eventTypes: ['message'] })).toBe(3);
    expect(await count({ deliveryIds: [`dlv_${again?.deliveryId.replaceAll('-', '')}`] })).toBe(1);
  });

  test('a list of ids, each once; foreign and unknown ones are answered alike', async () => {
    const { database } = stack;
    await addEndpoint(database, OTHER_WABA, 'https://other.example/hook');
    await publish(database, WABA, { count: 5, keys: 5 });
    await publish(database, OTHER_WABA, { count: 1, keys: 1 });
    await settleLive(database, 'delivered');
    const [first = '', second = ''] = await originalIds(database, WABA);
    const [foreign = ''] = await originalIds(database, OTHER_WABA);
    const { replayId, selection } = await startReplay(
      tools(),
      WABA,
      { deliveryIds: [second, first, second] },
      'test',
    );
    expect(selection.deliveryIds).toEqual([second, first]);
    await ended(replayId);
    expect(await deliverReplays(database)).toHaveLength(2);
    const missing = 'dlv_019a00000000700080000000000000ff';
    const future = 'dlv_ffffffffffff7000800000000000000f';
    for (const id of [foreign, missing, future]) {
      const refused = countReplay(tools(), WABA, { deliveryIds: [first, id] });
      await expect(refused).rejects.toMatchObject({
        code: 'unknown_delivery',
        message: `There is no delivery ${id}.`,
      });
    }
    const elsewhere = { wabaId: OTHER_WABA, replayId };
    await expect(replayOf(tools(), OTHER_WABA, replayId)).rejects.toMatchObject({ code: 'unknown_replay' });
    await expect(switchReplay(tools(), OTHER_WABA, replayId, 'cancel')).rejects.toMatchObject({
      code: 'unknown_replay',
    });
    expect(await findReplay(database, elsewhere.wabaId, replayId)).toBeNull();
  });

  test('nothing at all is refused, as are an empty filter and the endpoint of somebody else', async () => {
    const other = await addEndpoint(stack.database, OTHER_WABA, 'https://other.example/hook');
    const start = (selection: Parameters<typeof startReplay>[2]) =>
      startReplay(tools(), WABA, selection, 'test');
    await expect(start({})).rejects.toMatchObject({ code: 'invalid_value' });
    await expect(start({ states: ['failed'] })).rejects.toMatchObject({ code: 'nothing_to_replay' });
    await expect(start({ endpointId: other.id })).rejects.toMatchObject({ code: 'unknown_endpoint' });
    await expect(startReplay(tools(), '1', { states: ['failed'] }, 'test')).rejects.toMatchObject({
      code: 'unknown_waba',
    });
  });
});

describe('a replay never fills the queue', () => {
  test('it stops at the limit of an endpoint, and an endpoint that is stuck holds up no other', async () => {
    const { database } = stack;
    const other = await addEndpoint(database, WABA, 'https://second.example/hook');
    await publish(database, WABA, { count: 3_000, keys: 500 });
    await settleLive(database, 'failed');
    const { replayId } = await startReplay(tools(), WABA, { states: ['failed'] }, 'test');
    let delivered = 0;
    await eventually('the other endpoint has everything', async () => {
      const open = await query<{ endpoint_id: string; n: number }>(
        database,
        'select endpoint_id, count(*)::integer as n from delivery_queue where replay group by 1',
      );
      for (const { n } of open) expect(n).toBeLessThan(1_000 + 500 + 500);
      delivered += (await deliverReplays(database, 10_000, other.id)).length;
      return delivered === 3_000;
    });
    expect(await state(replayId)).toBe('running');
    const handle = stack.client.workflow.getHandle(`replay/${replayId}`);
    await eventually('it says what it waits for', async () => {
      const { raw } = await handle.describe();
      const message = raw.pendingActivities?.[0]?.lastFailure?.message ?? '';
      return message.includes(`Waiting for endpoint ${endpointId} to work off`);
    });
    let rest = 0;
    await eventually(
      'the stuck one too',
      async () => {
        rest += (await deliverReplays(database)).length;
        return rest === 3_000;
      },
      50_000,
    );
    await ended(replayId);
  });
});
