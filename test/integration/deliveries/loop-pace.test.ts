import { describe, expect, onTestFinished, test } from 'vitest';
import { startProber } from '../../../src/engine/deliveries/dispatch/queue-upkeep.ts';
import { FIRST_LIMIT } from '../../../src/engine/deliveries/loop/attempt-limits.ts';
import { openDelivery } from '../../../src/engine/deliveries/worker.ts';
import { ENDPOINT_SECRET } from '../../../src/engine/endpoint/endpoint-secrets.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { makeSecretBox } from '../../../src/platform/crypto/secret-box.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import type { DatabasePool } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';

/** The delivery loop of a worker, without Temporal; `watched` sees its statements. */
async function withLoop(watched: (text: string) => void = () => undefined) {
  const { database, url } = await seededWorkerDatabase(10);
  const config = loadConfig(testSettings(url));
  const objectStore = openObjectStore(config.objectStore);
  onTestFinished(() => objectStore.close());
  const raw: DatabasePool['raw'] = (text, bindings) => {
    watched(text);
    return database.raw(text, bindings);
  };
  const tools = { objectStore, logger: silentLogger, worker: 'w', onAttempt: () => undefined };
  const pools = { database: { ...database, raw }, upkeepDatabase: database };
  const { loop, close } = openDelivery(config, { ...tools, ...pools });
  onTestFinished(close);
  return { database, loop };
}

async function receive() {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  return receiver;
}

const countOf = async (database: DatabasePool, condition: string) =>
  (await query(database, `select 1 from delivery_queue where ${condition}`)).length;

describe('the delivery loop', () => {
  test('looks at most every 5 ms while it finds nothing, however often it is woken', async () => {
    let looks = 0;
    const { loop } = await withLoop((text) => {
      if (text.includes('delivery_queue')) looks += 1;
    });
    loop.start();
    await eventually('a first look', () => looks > 0);
    looks = 0;
    const startMs = performance.now();
    while (performance.now() - startMs < 1_000) {
      loop.wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(looks).toBeLessThanOrEqual(1 + (performance.now() - startMs) / 5);
    expect(looks).toBeGreaterThan(5);
  });

  test('has the result of an endpoint with one in flight recorded at once, for the next to go out', async () => {
    const { database, loop } = await withLoop();
    const receiver = await receive();
    const urls = [`${receiver.url}/one`];
    const [one = ''] = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
    await execute(database, 'update webhook_endpoints set max_in_flight = 1 where id = :one', { one });
    const cameMs: number[] = [];
    receiver.behave((webhook, response) => {
      cameMs.push(performance.now());
      return answer(200)(webhook, response);
    });
    const count = 40;
    const many = Array.from({ length: count }, () => one);
    await queueEach(database, WABA, many, (n) => `lane ${n}`);
    loop.start();
    await eventually('all are delivered', () => receiver.received.length, { is: count });
    const gapsMs = cameMs.slice(1).map((ms, n) => ms - (cameMs[n] ?? 0));
    // Found by a look, the next comes 50 ms later at the earliest, and now and then 20 ms.
    expect(gapsMs.filter((ms) => ms < 18).length).toBeGreaterThan(3);
  });

  test('claims nothing more of an endpoint whose secret does not open, and delivers to others', async () => {
    let looks = 0;
    const { database, loop } = await withLoop((text) => {
      if (text.includes('delivery_queue')) looks += 1;
    });
    const receiver = await receive();
    const urls = [`${receiver.url}/unreadable`, `${receiver.url}/good`];
    const [unreadable = '', good = ''] = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
    const lostKey = makeSecretBox([{ id: 'lost', key: Buffer.alloc(32, 8) }]);
    await execute(database, 'update webhook_endpoints set secret_sealed = :sealed where id = :unreadable', {
      sealed: lostKey.seal('secret', ENDPOINT_SECRET.place(unreadable)),
      unreadable,
    });
    const many = Array.from({ length: 300 }, () => unreadable);
    await queueEach(database, WABA, [...many, good], (n) => `lane ${n}`);
    loop.start();
    await eventually('the good endpoint has its delivery', () => receiver.received.length, { is: 1 });
    const before = looks;
    await eventually('it has looked 40 times more', () => {
      loop.wake();
      return looks >= before + 40;
    });
    expect(await countOf(database, `endpoint_id = ${unreadable} and state = 'due'`)).toBeGreaterThanOrEqual(
      many.length - FIRST_LIMIT,
    );
    expect(receiver.received).toHaveLength(1);
  });
});

describe('probes', () => {
  /** Endpoints whose probe is due, each with a delivery that waits. */
  async function probing(database: DatabasePool, url: string, count: number) {
    const urls = Array.from({ length: count }, (_, n) => `${url}/${n}`);
    const ids = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
    await database.raw(`update endpoint_health set mode = 'probing', next_probe_at = now()`);
    await queueEach(database, WABA, ids, (n) => `lane ${n}`);
  }

  test('of many endpoints go on at once: a look that was full is followed by the next, until none is due', async () => {
    const { database, loop } = await withLoop();
    const receiver = await receive();
    await probing(database, receiver.url, 90);
    loop.start();
    let looks = 0;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const probe = async () => {
      looks += 1;
      const hasMore = await loop.probe();
      if (!hasMore) resolve();
      return hasMore;
    };
    const prober = startProber({ logger: silentLogger, loop: { probe } });
    onTestFinished(() => prober.stop());
    await over;
    expect(looks).toBe(5);
    await eventually('all are probed', () => receiver.received.length, { is: 90 });
    expect(new Set(receiver.received.map(({ path }) => path)).size).toBe(90);
  });

  test('that hang leave the slots of deliveries free', async () => {
    const { database, loop } = await withLoop();
    const receiver = await receive();
    receiver.behave((webhook, response) =>
      webhook.path === '/good' ? answer(200)(webhook, response) : null,
    );
    await probing(database, receiver.url, 600);
    loop.start();
    const startMs = performance.now();
    const prober = startProber({ logger: silentLogger, loop });
    onTestFinished(() => prober.stop());
    await eventually('probes hang', () => receiver.received.length >= 100);
    // A quarter of the 512 slots; those that have taken half a second count no more.
    const periods = 1 + Math.floor((performance.now() - startMs) / 500);
    expect(loop.inFlight()).toBeLessThanOrEqual(128 * periods);
    const [good = ''] = await addEndpoints(database, WABA, {
      urls: [`${receiver.url}/good`],
      ratePerSecond: null,
    });
    await queueEach(database, WABA, [good], () => 'lane');
    await eventually('the other endpoint has its delivery', () =>
      receiver.received.some(({ path }) => path === '/good'),
    );
  });
});
