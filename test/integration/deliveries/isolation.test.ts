import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { insertTenant, savePhoneNumber, saveWaba } from '../../../src/accounts/accounts.ts';
import { insertBodies } from '../../../src/inbound/inbox.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const WABAS = 8;
const HEALTHY = 34;
const HANGING = 4;
/** One refuses connections, one answers 500. */
const FAILING = 2;

/** Bodies with one message each; every endpoint of the message's WABA gets it: 100 webhooks per second. */
const BODIES_PER_SECOND = 20;
const PHASE_MS = 6_000;
const WARM_UP_MS = 4_000;

/** An attempt at a hanging endpoint takes all of it, so three of them fit into a phase. */
const TIMEOUT_MS = 2_000;

const ALLOWED_RATIO = 1.5;

/**
 * The machine that runs the tests runs the servers, the receiver and other test files too. So each kind of run has its
 * best p95 taken from at least two runs, alternating, and up to six while the guarantee does not hold yet: what disturbs
 * one run does not decide, and an endpoint that delays others does so in every run. The slack is for a ratio of two small
 * numbers: a few ms of the scheduler are half as much again of 10 ms, and a tenth of what one time-out would add.
 */
const RUNS = { least: 2, most: 6 };
const SLACK_MS = 25;

/** A p95 above this without any bad endpoint says that no run was calm: it is no measure for the others yet. */
const CALM_MS = 100;

type Account = { wabaId: string; phoneNumberId: string; displayPhoneNumber: string };

const accounts: Account[] = Array.from({ length: WABAS }, (_, n) => ({
  wabaId: `90000000000100${n}`,
  phoneNumberId: `80000000000100${n}`,
  displayPhoneNumber: '12025550100',
}));

test(`${HANGING} endpoints that hang and ${FAILING} that fail do not delay ${HEALTHY} healthy ones beside them, and lose nothing`, {
  timeout: 180_000,
}, async () => {
  const { database, url } = await testDatabase();
  await seedAccounts(database);
  const receiver = await startReceivers();
  const healthy = Array.from({ length: HEALTHY }, (_, n) => n);
  for (const n of healthy) await addEndpoint(database, wabaOf(n), `${receiver.url}/healthy/${n}`);
  const worker = startWorkerProcess(
    testSettings(url, {
      HELIOGRAPH_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS),
      HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '1,2,5,5,5,5,5,5,5,5',
    }),
  );
  try {
    await worker.ready();
    await run({ database, receiver }, WARM_UP_MS);
    const best = { alone: Number.POSITIVE_INFINITY, beside: Number.POSITIVE_INFINITY };
    const holds = () => best.alone < CALM_MS && best.beside <= ALLOWED_RATIO * best.alone + SLACK_MS;
    const p95s: string[] = [];
    for (let n = 0; n < RUNS.least || (n < RUNS.most && !holds()); n += 1) {
      const alone = await run({ database, receiver });
      const beside = await runBesideBad({ database, receiver });
      best.alone = Math.min(best.alone, alone);
      best.beside = Math.min(best.beside, beside);
      p95s.push(`alone ${alone.toFixed(1)} ms, beside bad ones ${beside.toFixed(1)} ms`);
    }
    if (process.env.HELIOGRAPH_TEST_FIGURES !== undefined) process.stderr.write(`p95: ${p95s.join('; ')}\n`);
    expect(best.beside, `p95 of each run: ${p95s.join('; ')}`).toBeLessThanOrEqual(
      ALLOWED_RATIO * best.alone + SLACK_MS,
    );
  } finally {
    await worker.stop();
    await receiver.close();
  }
});

const wabaOf = (endpoint: number) => accounts[endpoint % WABAS]?.wabaId ?? '';

async function seedAccounts(database: Database): Promise<void> {
  for (const { wabaId, phoneNumberId, displayPhoneNumber } of accounts) {
    const tenantId = await insertTenant(database, `Store ${wabaId}`);
    await saveWaba(database, tenantId, { wabaId, accessTokenSealed: null });
    const number = { phoneNumberId, displayPhoneNumber, verifiedName: 'Store', qualityRating: 'GREEN' };
    await savePhoneNumber(database, wabaId, number);
  }
}

type Receivers = {
  url: string;
  refusingUrl: string;
  /** performance.now() at the arrival of an event at a healthy endpoint, by path and eventId. */
  arrivals: Map<string, number>;
  close(): Promise<void>;
};

/** All endpoints on one port: /healthy/<n> answers at once, /hanging/<n> never, /failing/<n> with 500. */
async function startReceivers(): Promise<Receivers> {
  const arrivals = new Map<string, number>();
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? '';
    if (path.startsWith('/healthy/')) {
      arrivals.set(`${path} ${request.headers['x-service-event-id']}`, performance.now());
    }
    request.resume();
    if (path.startsWith('/hanging/')) return;
    request.once('end', () => response.writeHead(path.startsWith('/failing/') ? 500 : 200).end());
  };
  const server = await listening(createServer(answer));
  const refusing = await listening(createServer());
  const [url, refusingUrl] = [urlOf(server), urlOf(refusing)];
  await closed(refusing);
  return { url, refusingUrl, arrivals, close: () => closed(server) };
}

function listening(server: Server): Promise<Server> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

async function closed(server: Server): Promise<void> {
  const end = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await end;
}

type Parts = { database: Database; receiver: Receivers };

let messages = 0;

/** Sends at the steady rate; returns the p95 of arrival latency at the healthy endpoints, each of which got everything. */
async function run({ database, receiver }: Parts, durationMs = PHASE_MS): Promise<number> {
  receiver.arrivals.clear();
  const sentMs = new Map<string, number>();
  const expected: { key: string; eventId: string }[] = [];
  const startMs = performance.now();
  for (let n = 0; n < (durationMs / 1_000) * BODIES_PER_SECOND; n += 1) {
    await sleep(startMs + (n * 1_000) / BODIES_PER_SECOND - performance.now());
    const account = accounts[n % WABAS];
    if (account === undefined) continue;
    const eventId = `wamid.ISOLATION${messages}`;
    messages += 1;
    sentMs.set(eventId, performance.now());
    for (let endpoint = n % WABAS; endpoint < HEALTHY; endpoint += WABAS) {
      expected.push({ key: `/healthy/${endpoint} ${eventId}`, eventId });
    }
    void insertBodies(database, [bodyOf(account, [textMessage(eventId, 'hello')])]);
  }
  await eventually('the healthy endpoints have everything', () => receiver.arrivals.size === expected.length);
  const latencies = expected.map(({ key, eventId }) => {
    return (receiver.arrivals.get(key) ?? Number.NaN) - (sentMs.get(eventId) ?? Number.NaN);
  });
  latencies.sort((a, b) => a - b);
  return latencies[Math.floor(latencies.length * 0.95)] ?? Number.NaN;
}

/** The same with six new endpoints that go wrong, in the WABAs of the healthy ones: each keeps all of its events. */
async function runBesideBad({ database, receiver }: Parts): Promise<number> {
  const urls = [
    ...Array.from({ length: HANGING }, (_, n) => `${receiver.url}/hanging/${n}`),
    `${receiver.refusingUrl}/refusing`,
    `${receiver.url}/failing/0`,
  ];
  const bad: string[] = [];
  for (const [n, url] of urls.entries()) {
    bad.push((await addEndpoint(database, wabaOf(HEALTHY + n), url)).id);
  }
  const p95Ms = await run({ database, receiver });
  const kept = await query<{ published: number; queued: number; attempted: number }>(
    database,
    `select (select count(*) from deliveries d where d.endpoint_id = w.id)::integer as published,
            (select count(*) from delivery_queue q where q.endpoint_id = w.id)::integer as queued,
            (select count(*) from attempts a where a.endpoint_id = w.id)::integer as attempted
       from webhook_endpoints w where w.id = any (cast(:bad as bigint[]))`,
    { bad },
  );
  expect(kept).toHaveLength(HANGING + FAILING);
  for (const { published, queued, attempted } of kept) {
    expect(published).toBeGreaterThan(0);
    expect(queued).toBe(published);
    expect(attempted).toBeGreaterThan(0);
  }
  await execute(database, 'delete from delivery_queue where endpoint_id = any (cast(:bad as bigint[]))', {
    bad,
  });
  await execute(database, 'delete from webhook_endpoints where id = any (cast(:bad as bigint[]))', { bad });
  return p95Ms;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
