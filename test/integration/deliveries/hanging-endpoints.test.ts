import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/inbound/inbox.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
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

const MOST_MS = 1_000;
const ALLOWED_RATIO = 1.5;

/** A ratio of two small numbers: what the scheduler adds is as much again. 600 time out at once, and are recorded. */
const SLACK_MS = { few: 50, many: 700 };

/** /crowd/<n> answers until told to hang, /watched always. */
async function startReceiver() {
  const arrivals = new Map<string, number>();
  let hangs = false;
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const isWatched = request.url === '/watched';
    if (isWatched) arrivals.set(String(request.headers['x-service-event-id']), performance.now());
    request.resume();
    if (isWatched || !hangs) request.once('end', () => response.writeHead(204).end());
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

let messages = 0;

/** Sends to both at their rates; the latencies at the watched endpoint, sorted. */
async function run(
  database: Database,
  arrivals: ReadonlyMap<string, number>,
  { crowdPerSecond, durationMs }: { crowdPerSecond: number; durationMs: number },
): Promise<number[]> {
  const sentMs = new Map<string, number>();
  const send = async (account: typeof CROWD, perSecond: number) => {
    const startMs = performance.now();
    for (let n = 0; n < (durationMs / 1_000) * perSecond; n += 1) {
      await sleep(Math.max(0, startMs + (n * 1_000) / perSecond - performance.now()));
      messages += 1;
      const eventId = `wamid.HANGING${messages}`;
      if (account === WATCHED) sentMs.set(eventId, performance.now());
      void insertBodies(database, [bodyOf(account, [textMessage(eventId, 'hello')])]);
    }
  };
  await Promise.all([send(CROWD, crowdPerSecond), send(WATCHED, WATCHED_PER_SECOND)]);
  await eventually('all arrived', () => [...sentMs.keys()].every((id) => arrivals.has(id)), 60_000);
  return [...sentMs].map(([id, atMs]) => (arrivals.get(id) ?? 0) - atMs).sort((a, b) => a - b);
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
    await run(database, receiver.arrivals, { crowdPerSecond, durationMs: HEALTHY_MS / 2 });
    const before = await run(database, receiver.arrivals, { crowdPerSecond, durationMs: HEALTHY_MS / 2 });
    receiver.hang();
    const after = await run(database, receiver.arrivals, { crowdPerSecond, durationMs: HANGING_MS });
    const figures = [before, after].map((ms) => `p95 ${p95(ms).toFixed(1)} max ${ms.at(-1)?.toFixed(1)} ms`);
    if (process.env.HELIOGRAPH_TEST_FIGURES !== undefined)
      process.stderr.write(`${figures.join(', then ')}\n`);
    expect(after.at(-1), figures.join(', then ')).toBeLessThan(MOST_MS);
    expect(p95(after), figures.join(', then ')).toBeLessThanOrEqual(ALLOWED_RATIO * p95(before) + slackMs);
  },
);
