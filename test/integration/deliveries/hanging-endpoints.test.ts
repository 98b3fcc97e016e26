import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/inbound/inbox.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { addEndpoints } from '../../support/many-endpoints.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const CROWD = {
  wabaId: '900000000000101',
  phoneNumberId: '800000000000111',
  displayPhoneNumber: '12025550100',
};
const WATCHED = { ...CROWD, wabaId: '900000000000202', phoneNumberId: '800000000000221' };

const TIMEOUT_MS = 8_000;
const HEALTHY_MS = 8_000;

/** Longer than a time-out: what begins with the first ones is looked at too. */
const HANGING_MS = 12_000;
const WATCHED_PER_SECOND = 5;

/** What waits for the slot of an attempt that hangs waits for several times as long. */
const MOST_MS = TIMEOUT_MS / 4;
const ALLOWED_RATIO = 1.5;

/** A webhook's way has so many commits and requests, one after the other, where the control has one of each. */
const STEPS = 4;

/** A ratio of two small numbers: what the scheduler adds is as much again. 600 time out at once, and are recorded. */
const SLACK_MS = { few: 50, many: 700 };

/** /crowd/<n> answers until told to hang, all others always. */
async function startReceiver() {
  const arrivals = new Map<string, number>();
  let hangs = false;
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/watched')
      arrivals.set(String(request.headers['x-service-event-id']), performance.now());
    request.resume();
    if (!(hangs && request.url?.startsWith('/crowd')))
      request.once('end', () => response.writeHead(204).end());
  };
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const hang = () => {
    hangs = true;
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, arrivals, hang };
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>;

let messages = 0;

/**
 * Sends to both at their rates; the latencies at the watched endpoint, sorted, and those of a control beside each: one
 * commit and one request, without Heliograph, which tell what the machine adds at that time.
 */
async function run(
  database: Database,
  { url, arrivals }: Receiver,
  { crowdPerSecond, durationMs }: { crowdPerSecond: number; durationMs: number },
): Promise<{ watched: number[]; control: number[] }> {
  const sentMs = new Map<string, number>();
  const controls: Promise<number>[] = [];
  const control = async () => {
    const startMs = performance.now();
    await query(database, `select pg_logical_emit_message(true, 'control', '')`);
    await fetch(`${url}/control`);
    return performance.now() - startMs;
  };
  const send = async (account: typeof CROWD, perSecond: number) => {
    const startMs = performance.now();
    for (let n = 0; n < (durationMs / 1_000) * perSecond; n += 1) {
      await sleep(Math.max(0, startMs + (n * 1_000) / perSecond - performance.now()));
      messages += 1;
      const eventId = `wamid.HANGING${messages}`;
      if (account === WATCHED) {
        sentMs.set(eventId, performance.now());
        controls.push(control());
      }
      void insertBodies(database, [bodyOf(account, [textMessage(eventId, 'hello')])]);
    }
  };
  await Promise.all([send(CROWD, crowdPerSecond), send(WATCHED, WATCHED_PER_SECOND)]);
  await eventually('all arrived', () => [...sentMs.keys()].every((id) => arrivals.has(id)), 60_000);
  const watched = [...sentMs].map(([id, atMs]) => (arrivals.get(id) ?? 0) - atMs);
  const sorted = (ms: number[]) => ms.sort((a, b) => a - b);
  return { watched: sorted(watched), control: sorted(await Promise.all(controls)) };
}

const p95 = (sorted: readonly number[]) => sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN;

test.each([
  { endpoints: 6, crowdPerSecond: 20, slackMs: SLACK_MS.few },
  { endpoints: 600, crowdPerSecond: 0.5, slackMs: SLACK_MS.many },
])(
  '$endpoints endpoints that begin to hang together keep another one from nothing',
  {
    timeout: 120_000,
  },
  async ({ endpoints, crowdPerSecond, slackMs }) => {
    const { database, url } = await testDatabase();
    await seedFixtureAccounts(database);
    const receiver = await startReceiver();
    const urls = Array.from({ length: endpoints }, (_, n) => `${receiver.url}/crowd/${n}`);
    await addEndpoints(database, CROWD.wabaId, { urls, ratePerSecond: null });
    await addEndpoint(database, WATCHED.wabaId, `${receiver.url}/watched`);
    const worker = startWorkerProcess(
      testSettings(url, {
        HELIOGRAPH_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS),
        HELIOGRAPH_DELIVERY_WORKFLOWS: 'auto',
      }),
    );
    onTestFinished(() => worker.stop());
    await worker.ready();
    await run(database, receiver, { crowdPerSecond, durationMs: HEALTHY_MS / 2 });
    const before = await run(database, receiver, { crowdPerSecond, durationMs: HEALTHY_MS / 2 });
    receiver.hang();
    const after = await run(database, receiver, { crowdPerSecond, durationMs: HANGING_MS });
    const figures = [before, after]
      .flatMap(({ watched, control }) => [watched, control])
      .map((ms) => `p95 ${p95(ms).toFixed(1)} max ${ms.at(-1)?.toFixed(1)} ms`)
      .join(', then ');
    if (process.env.HELIOGRAPH_TEST_FIGURES !== undefined) process.stderr.write(`${figures}\n`);
    expect(after.watched.at(-1), figures).toBeLessThan(MOST_MS);
    const allowedMs = ALLOWED_RATIO * p95(before.watched) + slackMs + STEPS * p95(after.control);
    expect(p95(after.watched), figures).toBeLessThanOrEqual(allowedMs);
  },
);
