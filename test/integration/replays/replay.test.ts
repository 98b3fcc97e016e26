import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { checkSelection } from '../../../src/features/replays/replay-input.ts';
import { queueReplayPage, readReplayPage } from '../../../src/features/replays/replay-steps.ts';
import { findReplay } from '../../../src/features/replays/replay-store.ts';
import { countReplay, replayOf, startReplay, switchReplay } from '../../../src/features/replays/replays.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { lowestUuidAt } from '../../../src/platform/public-ids.ts';
import { addEndpoint, freshTenant } from '../../support/test-accounts.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { type OperationsStack, startOperationsStack } from '../endpoints/operations-stack.ts';
import { deliverReplays, originalIds, publish, queuedStates, settleLive } from './replay-fixtures.ts';

let stack: OperationsStack;
let wabaId: string;
let endpointId: string;

beforeAll(async () => {
  stack = await startOperationsStack({ maxOpenPerEndpoint: 1_000 });
});
afterAll(() => stack?.stop());

beforeEach(async () => {
  ({ wabaId } = await freshTenant(stack.database));
  endpointId = (await addEndpoint(stack.database, wabaId, 'https://shop.example/hook')).id;
});

const tools = () => ({ database: stack.database, actor: SYSTEM });
const state = async (replayId: string) => (await replayOf(tools(), wabaId, replayId)).state;
const ended = (replayId: string, wanted = 'done') =>
  eventually(`replay ${replayId} is ${wanted}`, async () => (await state(replayId)) === wanted);

describe('a replay sends the same events again', () => {
  test('as new deliveries of the same events, in the order of each key, over pages and within a millisecond', async () => {
    const { database } = stack;
    await publish(database, wabaId, { count: 1_400, keys: 90 });
    await settleLive(database, 'failed', wabaId);
    const counted = await countReplay(tools(), wabaId, { states: ['failed'] });
    expect(counted).toMatchObject({
      deliveries: 1_400,
      byType: { message: 1_400 },
      byEndpoint: { [endpointId]: 1_400 },
    });
    const { replayId, total } = await startReplay(tools(), wabaId, { states: ['failed'] }, 'test');
    expect(total).toBe(1_400);
    const sent: Awaited<ReturnType<typeof deliverReplays>> = [];
    await eventually('all sent', async () => {
      sent.push(...(await deliverReplays(database, 10_000, { wabaId })));
      return sent.length >= 1_400;
    });
    await ended(replayId);
    expect(await queuedStates(database, wabaId)).toEqual({});
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
         from deliveries r join deliveries o on o.id = r.replay_of where r.replay_id = :replayId`,
      { replayId },
    );
    expect(pairs).toHaveLength(1_400);
    expect(pairs.every(({ same, fresh }) => same && fresh)).toBe(true);
    expect((await replayOf(tools(), wabaId, replayId)).outcomes).toMatchObject({
      delivered: 1_400,
      pending: 0,
    });
    expect(await query(database, 'select 1 from workflow_tasks where waba_id = :wabaId', { wabaId })).toEqual(
      [],
    );
  });

  test('the same once over, however many work on one replay at a time', async () => {
    const { database } = stack;
    await publish(database, wabaId, { count: 1_200, keys: 40 });
    await settleLive(database, 'delivered', wabaId);
    const { replayId } = await startReplay(tools(), wabaId, { endpointId }, 'test');
    const ids = { wabaId, replayId, endpointId };
    await Promise.all(Array.from({ length: 8 }, () => queueReplayPage(database, ids)));
    await ended(replayId);
    const [row] = await query<{ n: number; originals: number }>(
      database,
      'select count(*)::integer as n, count(distinct replay_of)::integer as originals from deliveries where replay_id = :replayId',
      { replayId },
    );
    expect(row).toEqual({ n: 1_200, originals: 1_200 });
    expect(await deliverReplays(database, 10_000, { wabaId })).toHaveLength(1_200);
  });

  test('in lanes of its own: live deliveries of the same keys neither wait for it nor hold it up', async () => {
    const { database } = stack;
    await publish(database, wabaId, { count: 20, keys: 2 });
    await settleLive(database, 'failed', wabaId);
    await publish(database, wabaId, { count: 20, keys: 2 });
    const { replayId } = await startReplay(tools(), wabaId, { states: ['failed'] }, 'test');
    await ended(replayId);
    const heads = await query<{ lane: string; replay: boolean }>(
      database,
      `select lane, replay from delivery_queue where endpoint_id = :endpointId and state = 'due' order by replay, lane`,
      { endpointId },
    );
    expect(heads).toEqual([
      { lane: 'key-0', replay: false },
      { lane: 'key-1', replay: false },
      { lane: `replay/${replayId}/key-0`, replay: true },
      { lane: `replay/${replayId}/key-1`, replay: true },
    ]);
    expect(await deliverReplays(database, 10_000, { wabaId })).toHaveLength(20);
  });

  test('one after the other at an endpoint whose scope is the endpoint', async () => {
    const { database } = stack;
    await execute(database, `update webhook_endpoints set order_scope = 'endpoint' where id = :endpointId`, {
      endpointId,
    });
    await publish(database, wabaId, { count: 30, keys: 30 });
    await settleLive(database, 'failed', wabaId);
    const { replayId } = await startReplay(tools(), wabaId, { states: ['failed'] }, 'test');
    await ended(replayId);
    expect(await queuedStates(database, wabaId)).toEqual({ due: 1, queued: 29 });
  });
});

test('cancelled around midnight, it takes out what processes with another clock have queued', async () => {
  const { database } = stack;
  await publish(database, wabaId, { count: 5, keys: 5 });
  await settleLive(database, 'failed', wabaId);
  const { replayId } = await startReplay(tools(), wabaId, { states: ['failed'] }, 'test');
  await ended(replayId);
  await execute(database, 'update deliveries set day = day - 1 where replay_id = :replayId', { replayId });
  const yesterday =
    'update delivery_queue set delivery_day = delivery_day - 1 where endpoint_id = :endpointId and replay';
  await execute(database, yesterday, { endpointId });
  expect((await replayOf(tools(), wabaId, replayId)).outcomes.pending).toBe(5);
  await switchReplay(tools(), wabaId, replayId, 'cancel');
  await eventually(
    'nothing is queued',
    async () => Object.keys(await queuedStates(database, wabaId)).length,
    {
      is: 0,
    },
  );
  expect((await replayOf(tools(), wabaId, replayId)).outcomes.dropped).toBe(5);
});

describe('what an endpoint takes now and never had', () => {
  test('is sent by the filter not_sent, in the order of each key, once', async () => {
    const { database } = stack;
    await execute(database, 'delete from webhook_endpoints where id = :endpointId', { endpointId });
    await publish(database, wabaId, { count: 1_200, keys: 100 });
    await publish(database, wabaId, { count: 3, keys: 3, type: 'status' });
    const newer = await addEndpoint(database, wabaId, 'https://newer.example/hook', ['message']);
    const count = async (selection: Parameters<typeof countReplay>[2]) =>
      (await countReplay(tools(), wabaId, selection)).byEndpoint;
    expect(await count({ states: ['failed', 'dropped', 'delivered'] })).toEqual({});
    expect(await count({ from: new Date(0) })).toEqual({ [newer.id]: 1_200 });
    expect(await count({ states: ['not_sent'], eventTypes: ['status'] })).toEqual({});
    const { replayId } = await startReplay(
      tools(),
      wabaId,
      { states: ['not_sent'], endpointId: newer.id },
      'test',
    );
    const last = new Map<string, number>();
    const sent: string[] = [];
    await eventually('all are delivered', async () => {
      for (const { lane, sequence, deliveryId } of await deliverReplays(database, 10_000, { wabaId })) {
        expect(sequence).toBe((last.get(lane) ?? 0) + 1);
        last.set(lane, sequence);
        sent.push(deliveryId);
      }
      return sent.length === 1_200;
    });
    await ended(replayId);
    expect(await replayOf(tools(), wabaId, replayId)).toMatchObject({
      total: 1_200,
      queued: 1_200,
      skipped: 0,
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
              :wabaId, 1, '1', 'message', 'e' || n, 'e' || n, 1, ''
         from generate_series(1, 12000) as n`,
      { noonMs, wabaId },
    );
    await execute(
      database,
      `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid, state)
       select day, id, waba_id, :endpointId, day, id, 'delivered' from events where waba_id = :wabaId
        order by id limit 11999`,
      { endpointId, wabaId },
    );
    const selection = checkSelection({ states: ['not_sent'] }, new Date());
    const toId = lowestUuidAt(noonMs + 43_200_000);
    const found: number[] = [];
    for (let fromId = lowestUuidAt(noonMs); fromId < toId; ) {
      const range = { endpointId, fromId, toId };
      const page = await database.transaction((trx) => readReplayPage(trx, wabaId, selection, range, 500));
      found.push(page.deliveries.length);
      fromId = page.nextId;
    }
    expect(found).toEqual([0, 0, 1]);
  });

  test('stands in the order of its key beside what the endpoint had', async () => {
    const { database } = stack;
    const one = { count: 1, keys: 1 };
    await publish(database, wabaId, one);
    await settleLive(database, 'delivered', wabaId);
    await execute(database, `update webhook_endpoints set event_types = '{status}' where id = :endpointId`, {
      endpointId,
    });
    await publish(database, wabaId, one);
    await execute(database, 'update webhook_endpoints set event_types = null where id = :endpointId', {
      endpointId,
    });
    await publish(database, wabaId, one);
    await settleLive(database, 'failed', wabaId);
    const { replayId } = await startReplay(tools(), wabaId, { endpointId }, 'test');
    await ended(replayId);
    expect((await deliverReplays(database, 10_000, { wabaId })).map(({ sequence }) => sequence)).toEqual([
      1, 2, 3,
    ]);
  });
});

describe('what is selected', () => {
  test('open deliveries, unreleased events and endpoints that are gone are passed over and counted', async () => {
    const { database } = stack;
    const gone = await addEndpoint(database, wabaId, 'https://gone.example/hook');
    await publish(database, wabaId, { count: 10, keys: 10 });
    await settleLive(database, 'delivered', wabaId);
    await execute(database, 'delete from webhook_endpoints where id = :id', { id: gone.id });
    const cut = `update events set body = null where waba_id = :wabaId and event_id = 'key-3'`;
    await execute(database, cut, { wabaId });
    await publish(database, wabaId, { count: 4, keys: 4, type: 'status' });
    const selection = { from: new Date(0) };
    expect(await countReplay(tools(), wabaId, selection)).toMatchObject({
      deliveries: 9,
      skipped: { pending: 4, noBody: 1, endpointGone: 10 },
    });
    const { replayId } = await startReplay(tools(), wabaId, selection, 'test');
    await ended(replayId);
    expect(await replayOf(tools(), wabaId, replayId)).toMatchObject({ total: 24, queued: 9, skipped: 15 });
  });

  test('filters narrow down by endpoint, time, type and state; replays are selected by id only', async () => {
    const { database } = stack;
    const second = await addEndpoint(database, wabaId, 'https://second.example/hook', ['status']);
    await publish(database, wabaId, { count: 3, keys: 3 });
    await settleLive(database, 'failed', wabaId);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const middle = new Date();
    await publish(database, wabaId, { count: 2, keys: 2, type: 'status' });
    await settleLive(database, 'delivered', wabaId);
    const count = async (selection: Parameters<typeof countReplay>[2]) =>
      (await countReplay(tools(), wabaId, selection)).deliveries;
    expect(await count({ to: middle })).toBe(3);
    expect(await count({ from: middle })).toBe(4);
    expect(await count({ from: middle, endpointId: second.id })).toBe(2);
    expect(await count({ eventTypes: ['message'] })).toBe(3);
    expect(await count({ states: ['delivered'] })).toBe(4);
    expect(await count({ states: ['delivered'], endpointId, eventTypes: ['message'] })).toBe(0);
    const { replayId } = await startReplay(tools(), wabaId, { eventTypes: ['message'] }, 'test');
    await ended(replayId);
    const [again] = await deliverReplays(database, 10_000, { wabaId });
    expect(await count({ eventTypes: ['message'] })).toBe(3);
    expect(await count({ deliveryIds: [`dlv_${again?.deliveryId.replaceAll('-', '')}`] })).toBe(1);
  });

  test('a list of ids, each once; foreign and unknown ones are answered alike', async () => {
    const { database } = stack;
    const { wabaId: otherWabaId } = await freshTenant(database);
    await addEndpoint(database, otherWabaId, 'https://other.example/hook');
    await publish(database, wabaId, { count: 5, keys: 5 });
    await publish(database, otherWabaId, { count: 1, keys: 1 });
    await settleLive(database, 'delivered', wabaId);
    await settleLive(database, 'delivered', otherWabaId);
    const [first = '', second = ''] = await originalIds(database, wabaId);
    const [foreign = ''] = await originalIds(database, otherWabaId);
    const { replayId, selection } = await startReplay(
      tools(),
      wabaId,
      { deliveryIds: [second, first, second] },
      'test',
    );
    expect(selection.deliveryIds).toEqual([second, first]);
    await ended(replayId);
    expect(await deliverReplays(database, 10_000, { wabaId })).toHaveLength(2);
    const missing = 'dlv_019a00000000700080000000000000ff';
    const future = 'dlv_ffffffffffff7000800000000000000f';
    for (const id of [foreign, missing, future]) {
      const refused = countReplay(tools(), wabaId, { deliveryIds: [first, id] });
      await expect(refused).rejects.toMatchObject({
        code: 'unknown_delivery',
        message: `There is no delivery ${id}.`,
      });
    }
    await expect(replayOf(tools(), otherWabaId, replayId)).rejects.toMatchObject({ code: 'unknown_replay' });
    await expect(switchReplay(tools(), otherWabaId, replayId, 'cancel')).rejects.toMatchObject({
      code: 'unknown_replay',
    });
    expect(await findReplay(database, otherWabaId, replayId)).toBeNull();
  });

  test('nothing at all is refused, as are an empty filter and the endpoint of somebody else', async () => {
    const { wabaId: otherWabaId } = await freshTenant(stack.database);
    const other = await addEndpoint(stack.database, otherWabaId, 'https://other.example/hook');
    const start = (selection: Parameters<typeof startReplay>[2]) =>
      startReplay(tools(), wabaId, selection, 'test');
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
    const other = await addEndpoint(database, wabaId, 'https://second.example/hook');
    await publish(database, wabaId, { count: 3_000, keys: 500 });
    await settleLive(database, 'failed', wabaId);
    const { replayId } = await startReplay(tools(), wabaId, { states: ['failed'] }, 'test');
    let delivered = 0;
    await eventually('the other endpoint has everything', async () => {
      const open = await query<{ endpoint_id: string; n: number }>(
        database,
        `select endpoint_id, count(*)::integer as n from delivery_queue
          where endpoint_id in (:endpointId, :id) and replay group by 1`,
        { endpointId, id: other.id },
      );
      for (const { n } of open) expect(n).toBeLessThan(1_000 + 500 + 500);
      delivered += (await deliverReplays(database, 10_000, { endpointId: other.id })).length;
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
    await eventually('the stuck one too', async () => {
      rest += (await deliverReplays(database, 10_000, { wabaId })).length;
      return rest === 3_000;
    });
    await ended(replayId);
  });
});
