import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { deliveryStart } from '../../../src/engine/deliveries/dispatch/start-workflows.ts';
import { FIRST_LIMIT } from '../../../src/engine/deliveries/loop/attempt-limits.ts';
import { type DeliveryLabel, releaseExpired } from '../../../src/engine/queue/claim.ts';
import { removeDelivery } from '../../../src/engine/queue/remove.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { publicDeliveryId } from '../../../src/platform/public-ids.ts';
import { type HttpSender, makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { attemptHead, idleLoop } from '../../support/idle-loop.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { answer, startReceiver, type WebhookReceiver } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';
const TIMEOUT_MS = 1_000;

let receiver: WebhookReceiver;
let sender: HttpSender;

beforeEach(async () => {
  receiver = await startReceiver();
  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  sender = makeHttpSender({ guard, allowHttp: true, connectTimeoutMs: 500, totalTimeoutMs: TIMEOUT_MS });
});

afterEach(async () => {
  await sender.close();
  await receiver.close();
});

/** Three statuses of one message, queued for the receiver: one lane of three. */
async function ladder(schedule: number[]) {
  const { database } = await seededWorkerDatabase();
  await addEndpoint(database, WABA, `${receiver.url}/hook`);
  await takeIn(database, ...['st_sent_v24', 'st_delivered', 'st_read'].map(fixtureBody));
  const defaults = { retryScheduleMs: schedule, timeoutMs: TIMEOUT_MS, workflows: 'auto' as const };
  return { database, ...idleLoop({ database, sender, defaults }) };
}

type QueueRow = {
  id: string;
  endpointId: string;
  day: string;
  state: string;
  attempts: number;
  token: string | null;
};

async function queue(database: Database): Promise<QueueRow[]> {
  return await query<QueueRow>(
    database,
    `select delivery_id as id, endpoint_id as "endpointId", delivery_day as day, state, attempts, token
       from delivery_queue order by position`,
  );
}

describe('an attempt', () => {
  test('goes to the whole URL; neither its log nor its workflow has the credentials in it', async () => {
    const { database, loop } = await ladder([1_000]);
    await database.raw('update webhook_endpoints set url = :url', {
      url: `${receiver.url}/geheim?token=geheim`,
    });
    await attemptHead(database, loop);
    expect(receiver.received[0]?.path).toBe('/geheim?token=geheim');
    const [attempt] = await query<{ url: string }>(database, 'select url from attempts');
    expect(attempt?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\*\*\*[0-9a-f]{6}$/);
    const [label] = await query<DeliveryLabel>(
      database,
      `select q.delivery_id as "deliveryId", q.delivery_day as "deliveryDay", w.id as "endpointId",
              w.url as "endpointUrl", ev.waba_id as "wabaId", ev.tenant_id as "tenantId",
              ev.event_type as "eventType", ev.event_id as "eventId"
         from delivery_queue q join webhook_endpoints w on w.id = q.endpoint_id
         join events ev on ev.day = q.event_day and ev.id = q.event_uuid limit 1`,
    );
    if (label === undefined) throw new Error('no label');
    const publicUrl = 'https://gateway.example';
    const { options } = deliveryStart({ taskQueue: 'q', leaseMs: 1, eager: false, publicUrl }, label, {
      eventIdHash: 'hash',
      news: null,
      held: false,
    });
    expect(options.staticDetails).toContain('/***');
    const page = `${publicUrl}/portal/w/${label.wabaId}/deliveries/${publicDeliveryId(label.deliveryId)}`;
    expect(options.staticDetails).toContain(`](${page})`);
    expect(JSON.stringify(options)).not.toContain('geheim');
  });

  test('that succeeds lets the next of its lane go, and only that', async () => {
    const { database, loop } = await ladder([1_000]);
    expect((await queue(database)).map((row) => row.state)).toEqual(['due', 'queued', 'queued']);
    expect(await attemptHead(database, loop)).toMatchObject({ state: 'delivered', statusCode: 200 });
    expect((await queue(database)).map((row) => row.state)).toEqual(['due', 'queued']);
  });

  test('tells the limiter of its endpoint how it went', async () => {
    const { database, loop, tools } = await ladder([1_000]);
    const { endpointId = '' } = (await queue(database))[0] ?? {};
    receiver.behave(answer(503));
    await attemptHead(database, loop);
    expect(tools.limiter.free(endpointId)).toBe(FIRST_LIMIT / 2);
  });

  test('that fails keeps its place; the next of its lane waits until the schedule is exhausted', async () => {
    const { database, loop } = await ladder([1_000]);
    receiver.behave(answer(500));
    expect(await attemptHead(database, loop)).toMatchObject({ state: 'retrying', attempt: 1 });
    expect((await queue(database)).map((row) => row.state)).toEqual(['retrying', 'queued', 'queued']);
    expect(await attemptHead(database, loop)).toMatchObject({ state: 'waiting' });
    expect(receiver.received).toHaveLength(1);
    await database.raw('update delivery_queue set next_attempt_at = now()');
    expect(await attemptHead(database, loop)).toMatchObject({ state: 'failed', attempt: 2 });
    expect((await queue(database)).map((row) => row.state)).toEqual(['due', 'queued']);
    const failed = await query<{ last_error: string }>(
      database,
      `select last_error from deliveries where state = 'failed'`,
    );
    expect(failed).toEqual([{ last_error: 'the endpoint returned 500' }]);
  });

  test('whose lease was taken over meanwhile records nothing', async () => {
    const { database, loop } = await ladder([1_000]);
    receiver.behave(async (webhook, response) => {
      await database.raw(`update delivery_queue set token = gen_random_uuid() where state = 'claimed'`);
      return answer(200)(webhook, response);
    });
    expect(await attemptHead(database, loop)).toMatchObject({ state: 'waiting' });
    expect(await query(database, 'select 1 from attempts')).toEqual([]);
    expect((await queue(database)).map((row) => row.state)).toEqual(['claimed', 'queued', 'queued']);
  });

  test('that nobody finished is taken over when its lease has been released, not before', async () => {
    const { database, loop } = await ladder([1_000]);
    const lease = `update delivery_queue set state = 'claimed', token = gen_random_uuid(),
                     lease_until = clock_timestamp() + interval '300 milliseconds' where state = 'due'`;
    await database.raw(lease);
    expect(await attemptHead(database, loop)).toMatchObject({ state: 'waiting' });
    expect(await releaseExpired(database, { withinSeconds: 60, limit: 10 })).toBe(0);
    expect(receiver.received).toHaveLength(0);
    await new Promise((resolve) => setTimeout(resolve, 320));
    expect(await releaseExpired(database, { withinSeconds: 60, limit: 10 })).toBe(1);
    expect(await attemptHead(database, loop)).toMatchObject({ state: 'delivered' });
  });

  test('that a dead process claimed is taken over, though the clock of the database was set back since then', async () => {
    const { database, loop } = await ladder([1_000]);
    await database.raw(
      `update delivery_queue set state = 'claimed', token = gen_random_uuid(),
              lease_until = clock_timestamp() + interval '1 hour' where state = 'due'`,
    );
    expect(await releaseExpired(database, { withinSeconds: 60, limit: 10 })).toBe(1);
    expect(await attemptHead(database, loop)).toMatchObject({ state: 'delivered' });
  });

  test('of a delivery that has ended says how it ended', async () => {
    const { database, loop } = await ladder([1_000]);
    const [head] = await queue(database);
    const ref = { deliveryId: head?.id ?? '', deliveryDay: head?.day ?? '' };
    await loop.attemptOne(ref);
    expect(await loop.attemptOne(ref)).toMatchObject({
      state: 'settled',
      end: { state: 'delivered', attempts: 1, statusCode: 200 },
    });
    const [next] = await queue(database);
    const dropped = { deliveryId: next?.id ?? '', deliveryDay: next?.day ?? '' };
    await database.transaction((trx) => removeDelivery(trx, dropped.deliveryId, 'not wanted'));
    expect(await loop.attemptOne(dropped)).toMatchObject({
      state: 'settled',
      end: { state: 'dropped', error: 'not wanted' },
    });
    await database.raw('delete from deliveries');
    expect(await loop.attemptOne(ref)).toEqual({ state: 'settled', end: null });
  });

  test('is logged with time, answer and address, and without its signature', async () => {
    const { database, loop } = await ladder([1_000]);
    receiver.behave((_webhook, response) => {
      response.writeHead(503, { 'content-type': 'application/x' });
      response.end(Buffer.from([0, 255, 1, 0]));
      return 503;
    });
    await attemptHead(database, loop);
    const [row] = await query<Record<string, unknown> & { response_body: Buffer }>(
      database,
      'select * from attempts',
    );
    expect(row).toMatchObject({ attempt: 1, status_code: 503, remote_address: '127.0.0.1', worker: 'test' });
    expect([...(row?.response_body ?? [])]).toEqual([0, 255, 1, 0]);
    expect(row).toMatchObject({ reused: false, connect_ms: expect.any(Number), tls_ms: null });
    expect(JSON.stringify(row)).not.toMatch(/v1,/);
  });

  test('at an endpoint that hangs ends in time and says so', async () => {
    const { database, loop } = await ladder([1_000]);
    receiver.behave(
      (_webhook, response) => new Promise((resolve) => response.on('close', () => resolve(null))),
    );
    // The receiver lets go only when the attempt has given it up.
    expect(await attemptHead(database, loop)).toMatchObject({
      state: 'retrying',
      reason: expect.stringMatching(/^timeout/),
    });
  });

  test('at an endpoint that is paused is not made', async () => {
    const { database, loop } = await ladder([1_000]);
    await database.raw(`update endpoint_health set mode = 'paused'`);
    expect(await attemptHead(database, loop)).toMatchObject({
      state: 'waiting',
      reason: 'the endpoint is paused',
    });
    expect(receiver.received).toHaveLength(0);
    expect((await queue(database)).map((row) => row.state)).toEqual(['due', 'queued', 'queued']);
  });
});
