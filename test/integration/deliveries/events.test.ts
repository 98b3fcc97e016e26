import { describe, expect, test } from 'vitest';
import { publishEvents } from '../../../src/engine/deliveries/publish.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { comparable, NUMBER, OTHER_WABA, SECOND_NUMBER, startTestApi, WABA } from '../api/api-harness.ts';
import { client, pastMs, publishOne, uuidOf } from './event-fixtures.ts';

describe('GET /api/external/events', () => {
  test('shows each event once in either order, over midnight too, with its body byte for byte as sent', async () => {
    const api = await startTestApi();
    const { page, call } = await client(api);
    await addEndpoint(api.database, WABA, 'https://shop.example/hook');
    const ids: string[] = [];
    for (let index = 0; index < 23; index += 1) {
      const at = new Date(Date.now() - 30 * 3_600_000 + index * 3_600_000);
      ids.push(
        await publishOne(api.database, `e${index}`, {
          at,
          dataJson: `{"n":12345678901234567890.10,"i":${index}}`,
        }),
      );
    }
    await publishOne(api.database, 'foreign', { wabaId: OTHER_WABA, at: pastMs(0) });
    for (const [order, expected] of [
      ['asc', ids],
      ['desc', ids.toReversed()],
    ] as const) {
      for (const limit of [1, 7, 23, 100]) {
        const seen: string[] = [];
        for (let cursor = ''; ; ) {
          const found = await page(`?order=${order}&limit=${limit}${cursor}`);
          seen.push(...found.data.map(({ id }) => id));
          cursor = `&cursor=${found.nextCursor}`;
          if (!found.hasMore) break;
        }
        expect(seen).toEqual(expected);
      }
    }
    const { body } = await call('GET', '/api/external/events?limit=1');
    const [stored] = await query<{ body: Buffer }>(
      api.database,
      `select body from events where waba_id = '${WABA}' order by id desc limit 1`,
    );
    expect(body).toContain(`"body":${stored?.body.toString('utf8')}}`);
    expect(body).toContain('12345678901234567890.10');
    expect(JSON.parse(body).data[0]).toMatchObject({
      id: ids.at(-1),
      eventType: 'message',
      eventId: 'e22',
      phoneNumberId: NUMBER,
      sequence: 1,
      deliverySummary: { pending: 1, delivered: 0, failed: 0, dropped: 0 },
    });
  });

  test('filters by type, eventId, number, time and state of the newest delivery to an endpoint', async () => {
    const api = await startTestApi();
    const { database } = api;
    const { page } = await client(api);
    await addEndpoint(database, WABA, 'https://shop.example/hook');
    const first = await publishOne(database, 'a', { at: pastMs(0) });
    const second = await publishOne(database, 'b', {
      at: pastMs(1),
      type: 'status',
      phoneNumberId: SECOND_NUMBER,
    });
    const third = await publishOne(database, 'a', { at: pastMs(2), type: 'payment' });
    const ids = async (queryText: string) => (await page(queryText)).data.map(({ id }) => id);
    expect(await ids('?type=status')).toEqual([second]);
    expect(await ids('?eventId=a&order=asc')).toEqual([first, third]);
    expect(await ids(`?phoneNumberId=${SECOND_NUMBER}`)).toEqual([second]);
    const between = new Date(Date.now() - 70_000).toISOString();
    expect(await ids(`?until=${between}`)).toEqual([]);
    expect(await ids(`?since=${between}`)).toEqual([third, second, first]);
    expect(await ids('?state=failed')).toEqual([]);
    await execute(database, `update deliveries set state = 'failed' where event_uuid = :uuid`, {
      uuid: uuidOf(second),
    });
    expect(await ids('?state=failed')).toEqual([second]);
    expect(await ids('?state=pending')).toEqual([third, first]);
    await execute(
      database,
      `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid, state, replay_of)
       select day, cast('ffffffff-ffff-7fff-bfff-ffffffffffff' as uuid), waba_id, endpoint_id, event_day, event_uuid,
              'delivered', id from deliveries where event_uuid = :uuid`,
      { uuid: uuidOf(second) },
    );
    expect(await ids('?state=failed')).toEqual([]);
    expect(await ids('?state=delivered')).toEqual([second]);
  });

  test('a page that a filter leaves empty has a cursor that goes on behind what was looked at', async () => {
    const api = await startTestApi();
    const { page } = await client(api);
    const wanted = await publishOne(api.database, 'rare', { type: 'payment', at: pastMs(0) });
    await execute(
      api.database,
      `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body)
       select (timestamptz 'epoch' + ms * interval '1 millisecond')::date,
              cast(lpad(to_hex(ms), 12, '0') || '7000' || '8000' || lpad(to_hex(n), 12, '0') as uuid),
              waba_id, tenant_id, '${NUMBER}', 'message', 'e' || n, 'e' || n, 1, '{}'
         from wabas, generate_series(1, 12000) n, lateral (select cast(:value as bigint) as ms) t where waba_id = '${WABA}'`,
      { value: Date.now() - 30_000 },
    );
    const first = await page('?type=payment');
    expect([first.data.length, first.hasMore]).toEqual([0, true]);
    const second = await page(`?type=payment&cursor=${first.nextCursor}`);
    expect(second.data.map(({ id }) => id)).toEqual([wanted]);
    expect([second.hasMore, second.nextCursor]).toEqual([false, null]);
  });

  test('in order, it waits for whoever is still publishing earlier events, and its cursor goes on later', async () => {
    const api = await startTestApi();
    const { database } = api;
    const { page } = await client(api);
    const settled = await publishOne(database, 'settled', { at: pastMs(0) });
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const slow = database.transaction(async (trx) => {
      const rows = await query<{ id: string }>(
        trx,
        'select tenant_id as id from wabas where waba_id = :waba',
        { waba: WABA },
      );
      const event = {
        wabaId: WABA,
        tenantId: rows[0]?.id ?? '',
        phoneNumberId: NUMBER,
        type: 'message' as const,
        eventId: 'slow',
        laneKey: 'slow',
        conversationId: null,
        messageId: null,
        dataJson: '{}',
      };
      await publishEvents(trx, [event], new Date());
      begun.resolve();
      await gate.promise;
    });
    await begun.promise;
    await publishOne(database, 'fast');
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const first = await page('?order=asc');
    expect(first.data.map(({ id }) => id)).toEqual([settled]);
    expect(first.hasMore).toBe(false);
    expect((await page()).data.map(({ eventId }) => eventId)).toEqual(['fast', 'settled']);
    gate.resolve();
    await slow;
    let later = first;
    // Who is publishing is read anew a moment later only.
    await expect
      .poll(async () => {
        later = await page(`?order=asc&cursor=${first.nextCursor}`);
        return later.data.map(({ eventId }) => eventId);
      })
      .toEqual(['slow', 'fast']);
    const end = await page(`?order=asc&cursor=${later.nextCursor}`);
    expect(end).toEqual({ data: [], hasMore: false, nextCursor: expect.any(String) });
  });

  test('in order, it waits a minute for an event that is not released yet, then shows it without a body', async () => {
    const api = await startTestApi();
    const { database } = api;
    const { page } = await client(api);
    await publishOne(database, 'reserved', {
      at: new Date(Date.now() - 20_000),
      dataJson: null,
      type: 'order',
    });
    await publishOne(database, 'behind', { at: new Date(Date.now() - 10_000) });
    expect((await page('?order=asc')).data).toEqual([]);
    await publishOne(database, 'old', { at: new Date(Date.now() - 90_000), dataJson: null, type: 'order' });
    expect((await page('?order=asc')).data).toMatchObject([{ eventId: 'old', occurredAt: null, body: null }]);
  });

  test('large bodies end a page early', async () => {
    const api = await startTestApi();
    const { page } = await client(api);
    for (let index = 0; index < 3; index += 1) {
      await publishOne(api.database, `e${index}`, {
        at: pastMs(index),
        dataJson: `{"x":"${'x'.repeat(3_000_000)}"}`,
      });
    }
    const first = await page();
    expect([first.data.length, first.hasMore]).toEqual([1, true]);
    expect((await page(`?cursor=${first.nextCursor}`)).data[0]?.eventId).toBe('e1');
  });

  test('refuses what is no parameter, value or cursor of it', async () => {
    const api = await startTestApi();
    const { call } = await client(api);
    const other = await client(api, OTHER_WABA);
    for (let index = 0; index < 2; index += 1)
      await publishOne(api.database, 'f', { wabaId: OTHER_WABA, at: pastMs(index) });
    const { nextCursor } = await other.page('?limit=1');
    for (const [text, param] of [
      ['?kind=x', 'kind'],
      ['?type=sms', 'type'],
      ['?state=open', 'state'],
      ['?order=up', 'order'],
      ['?eventId=%00', 'eventId'],
      ['?eventId=', 'eventId'],
      ['?since=yesterday', 'since'],
      ['?since=2026-13-45T00:00:00Z', 'since'],
      ['?until=1', 'until'],
      ['?limit=0', 'limit'],
      ['?limit=101', 'limit'],
      ['?cursor=x', 'cursor'],
      [`?limit=1&cursor=${nextCursor}`, 'cursor'],
      ['?type=message&type=status', 'type'],
    ]) {
      const response = await call('GET', `/api/external/events${text}`);
      expect([text, response.statusCode, response.json().error.param]).toEqual([text, 400, param]);
    }
    expect((await other.page(`?limit=1&cursor=${nextCursor}`)).data).toHaveLength(1);
  });
});

describe('GET /api/external/events/:id', () => {
  test('shows deliveries and attempts, without signatures, addresses of ours or names of workers', async () => {
    const api = await startTestApi();
    const { database } = api;
    const { call } = await client(api);
    const endpoint = await addEndpoint(database, WABA, 'https://shop.example/hook');
    const id = await publishOne(database, 'e', { dataJson: '{"n":1.0}' });
    const [delivery] = await query<{ id: string }>(database, 'select id from deliveries');
    await execute(
      database,
      `insert into attempts (delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, dns_ms, reused, status_code,
                             url, remote_address, user_agent, custom_headers, response_headers, response_body, worker)
       values (:deliveryId, 1, :wabaId, :endpointId, '2026-11-23T10:00:00.123Z', 12.5, 1, false, 503,
               'https://shop.example/hook', '203.0.113.9', 'Heliograph/0.9', 'Authorization,X-Shop', '{"server":"x"}',
               :body, 'worker-7')`,
      {
        deliveryId: delivery?.id ?? '',
        wabaId: WABA,
        endpointId: endpoint.id,
        body: Buffer.from([0x6e, 0xff, 0x00]),
      },
    );
    const response = await call('GET', `/api/external/events/${id}`);
    expect(response.statusCode).toBe(200);
    expect(response.body).toContain('"data":{"n":1.0}');
    for (const hidden of ['203.0.113.9', 'worker-7', '-signature'])
      expect(response.body).not.toContain(hidden);
    expect(response.json()).toMatchObject({
      id,
      eventId: 'e',
      deliveries: [
        {
          id: expect.stringMatching(/^dlv_/),
          endpointId: endpoint.id,
          state: 'pending',
          replayId: null,
          attempts: [
            {
              attempt: 1,
              durationMs: 12.5,
              timings: { dnsMs: 1, connectMs: null, totalMs: 12.5, reused: false },
              statusCode: 503,
              error: null,
              requestHeaders: {
                Authorization: '(not shown)',
                'X-Shop': '(not shown)',
                'content-type': 'application/json',
                'user-agent': 'Heliograph/0.9',
                'webhook-id': id,
                'webhook-timestamp': '1795428000',
                'Idempotency-Key': id,
                'X-Service-Event-Id': 'e',
                'X-Service-Attempt': '1',
                'X-Service-Sequence': '1',
              },
              responseHeaders: { server: 'x' },
              responseBody: 'n\ufffd\u0000',
            },
          ],
        },
      ],
    });
  });

  test('answers for another WABA’s event, and for what cannot be an id, as for a missing one', async () => {
    const api = await startTestApi();
    const { call } = await client(api);
    const foreign = await publishOne(api.database, 'e', { wabaId: OTHER_WABA });
    const missing = comparable(
      await call('GET', `/api/external/events/evt_01900000000070008000000000000000`),
    );
    expect(missing.status).toBe(404);
    for (const id of [
      foreign,
      'evt_',
      'x',
      foreign.toUpperCase(),
      `evt_${'f'.repeat(12)}7${'f'.repeat(19)}`,
      '%00',
      '1',
    ]) {
      expect([id, comparable(await call('GET', `/api/external/events/${id}`))]).toEqual([id, missing]);
      expect([id, comparable(await call('POST', `/api/external/events/${id}/replay`)).status]).toEqual([
        id,
        404,
      ]);
    }
  });
});
