import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { STREAM_LIMITS } from '../../../src/api/deliveries/event-stream-places.ts';
import { revokeApiKey } from '../../../src/features/keys/api-key-store.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { addKey, OTHER_WABA, startTestApi, type TestApi, WABA } from '../api/api-harness.ts';
import { pastMs, publishOne } from './event-fixtures.ts';
import { openEventStream } from './event-stream-client.ts';

async function startListening(limits: Partial<typeof STREAM_LIMITS> = {}) {
  const api = await startTestApi(async () => ({
    streamLimits: { ...STREAM_LIMITS, checkEveryMs: 100, ...limits },
  }));
  const baseUrl = await api.app.listen({ port: 0, host: '127.0.0.1' });
  const key = await addKey(api.database, WABA);
  return { api, baseUrl, ...key };
}

const idIn = (block: { data: string | null } | null) => JSON.parse(block?.data ?? 'null')?.id;

async function idsOf(stream: Awaited<ReturnType<typeof openEventStream>>, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push(idIn(await stream.nextData()));
  return ids;
}

const publishMany = async ({ database }: TestApi, names: readonly string[]): Promise<string[]> => {
  const ids: string[] = [];
  for (const name of names) ids.push(await publishOne(database, name));
  return ids;
};

describe('GET /api/external/events/stream', () => {
  test('sends events in order as the list has them, and only those of the WABA of the key', async () => {
    const { api, baseUrl, authorization } = await startListening();
    await publishOne(api.database, 'before', { at: pastMs(0) });
    const stream = await openEventStream(baseUrl, authorization);
    expect(stream.response.headers.get('content-type')).toContain('text/event-stream');
    expect(await stream.next()).toMatchObject({ retry: '1000', id: expect.any(String) });
    await publishOne(api.database, 'foreign', { wabaId: OTHER_WABA });
    const ids = [
      await publishOne(api.database, 'a', { dataJson: '{"n":12345678901234567890.10}' }),
      ...(await publishMany(api, ['b', 'a', 'c'])),
    ];
    const first = await stream.nextData();
    expect(idIn(first)).toBe(ids[0]);
    expect(first?.data).toContain('12345678901234567890.10');
    expect(await idsOf(stream, 3)).toEqual(ids.slice(1));
    const { authorization: other } = await addKey(api.database, OTHER_WABA);
    const foreign = await openEventStream(baseUrl, other, { lastEventId: stream.lastId() });
    expect(foreign.response.status).toBe(400);
  });

  test('a client that is cut again and again and resumes loses nothing and gets nothing twice', async () => {
    const { api, baseUrl, authorization } = await startListening();
    let stream = await openEventStream(baseUrl, authorization);
    await stream.next();
    const published = publishMany(
      api,
      Array.from({ length: 300 }, (_, n) => `e${n % 7}`),
    );
    const seen: string[] = [];
    for (let round = 0; seen.length < 300; round += 1) {
      const block = await stream.nextData();
      seen.push(idIn(block));
      if (seen.length % 23 !== 0) continue;
      const lastEventId = stream.lastId();
      stream.cut();
      // Both ways to say where to go on.
      const how = round % 2 === 0 ? { lastEventId } : { query: `?cursor=${lastEventId}` };
      stream = await openEventStream(baseUrl, authorization, how);
    }
    expect(seen).toEqual(await published);
  });

  test('a cursor of before many events is resumed, without a duplicate where the past meets the present', async () => {
    const { api, baseUrl, authorization } = await startListening();
    const stream = await openEventStream(baseUrl, authorization);
    await stream.next();
    const lastEventId = stream.lastId();
    stream.cut();
    const past = await publishMany(
      api,
      Array.from({ length: 250 }, (_, n) => `past${n}`),
    );
    const resumed = await openEventStream(baseUrl, authorization, { lastEventId });
    const present = await publishMany(api, ['p1', 'p2']);
    expect(await idsOf(resumed, 252)).toEqual([...past, ...present]);
  });

  test('filters by types, and its cursor passes over the events that it leaves out', async () => {
    const { api, baseUrl, authorization } = await startListening();
    const stream = await openEventStream(baseUrl, authorization, { query: '?types=status,upstream.*' });
    await stream.next();
    await publishOne(api.database, 'm');
    const wanted = [
      await publishOne(api.database, 's', { type: 'status' }),
      await publishOne(api.database, 'u', { type: 'upstream.account_update' }),
    ];
    expect(await idsOf(stream, 2)).toEqual(wanted);
    const wrong = await openEventStream(baseUrl, authorization, { query: '?types=status,nothing' });
    expect(wrong.response.status).toBe(400);
  });

  test('ends with the reason when its key is revoked or expires', async () => {
    const { api, baseUrl, authorization, id } = await startListening();
    const stream = await openEventStream(baseUrl, authorization);
    await stream.next();
    await revokeApiKey(api.database, WABA, id);
    expect(await stream.nextData()).toMatchObject({ event: 'end', data: '{"reason":"key_revoked"}' });
    expect(await stream.next()).toBeNull();
    const second = await addKey(api.database, WABA);
    const expiring = await openEventStream(baseUrl, second.authorization);
    await expiring.next();
    await execute(api.database, 'update api_keys set expires_at = now() where id = :id', { id: second.id });
    expect(await expiring.nextData()).toMatchObject({ event: 'end', data: '{"reason":"key_expired"}' });
    expect((await openEventStream(baseUrl, authorization)).response.status).toBe(401);
  });

  test('a reader that stops reading is cut, and can go on from its last event', async () => {
    const { api, baseUrl, authorization } = await startListening({ maxBlockedMs: 500 });
    const stream = await openEventStream(baseUrl, authorization);
    await stream.next();
    const text = 'x'.repeat(1_000_000);
    const ids: string[] = [];
    for (let n = 0; n < 30; n += 1) {
      ids.push(await publishOne(api.database, `big${n}`, { dataJson: JSON.stringify({ text }) }));
    }
    await sleep(5_000);
    const seen: string[] = [];
    for (let block = await stream.nextData(); block !== null; block = await stream.nextData()) {
      seen.push(idIn(block));
    }
    expect(seen.length).toBeLessThan(30);
    const resumed = await openEventStream(baseUrl, authorization, { lastEventId: stream.lastId() });
    expect([...seen, ...(await idsOf(resumed, 30 - seen.length))]).toEqual(ids);
  });

  test('has limits per key and per tenant, and a place is free again when its client has gone', async () => {
    const { api, baseUrl, authorization } = await startListening({ perKey: 2, perTenant: 3 });
    const open = (key = authorization) => openEventStream(baseUrl, key);
    const [first] = [await open(), await open()];
    const refused = await open();
    expect(refused.response.status).toBe(429);
    expect(refused.response.headers.get('retry-after')).toBe('10');
    const other = await addKey(api.database, WABA);
    expect((await open(other.authorization)).response.status).toBe(200);
    expect((await open(other.authorization)).response.status).toBe(429);
    first?.cut();
    await expect.poll(async () => (await open()).response.status, { interval: 200 }).toBe(200);
  });

  test('a server that stops ends its streams with a hint when to come again', async () => {
    const { api, baseUrl, authorization } = await startListening();
    const stream = await openEventStream(baseUrl, authorization);
    await stream.next();
    const closed = api.app.close();
    expect(await stream.nextData()).toMatchObject({
      event: 'end',
      data: '{"reason":"server_stopping"}',
      retry: '1000',
    });
    await closed;
  });

  test('once all streams have closed, PostgreSQL is no longer asked for events', async () => {
    const { api, baseUrl, authorization } = await startListening();
    const scans = async () => {
      const [row] = await query<{ calls: string }>(
        api.database,
        `select coalesce(sum(seq_scan + idx_scan), 0) as calls from pg_stat_user_tables where relname like 'events%'`,
      );
      return Number(row?.calls);
    };
    /** Within three seconds; an idle connection reports what it did up to ten seconds later. */
    const scansAgo = async () => {
      const before = await scans();
      await sleep(3_000);
      return (await scans()) - before;
    };
    const streams = await Promise.all([1, 2, 3, 4].map(() => openEventStream(baseUrl, authorization)));
    for (const stream of streams) await stream.next();
    expect(await scansAgo()).toBeGreaterThan(0);
    for (const stream of streams) stream.cut();
    await eventually('no scans of events', scansAgo, { is: 0 });
  });

  test('HEAD opens no stream', async () => {
    const { baseUrl, authorization } = await startListening({ perKey: 1 });
    for (let n = 0; n < 3; n += 1) {
      const { status } = await fetch(`${baseUrl}/api/external/events/stream`, {
        method: 'HEAD',
        headers: { authorization },
      });
      expect(status).toBe(200);
    }
    expect((await openEventStream(baseUrl, authorization)).response.status).toBe(200);
  });
});
