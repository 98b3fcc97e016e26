import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { insertTenant, savePhoneNumber, saveWaba } from '../../../src/features/accounts/accounts.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
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
const PHASE_MS = 3_000;

/**
 * As long as may be, and several times what the healthy endpoints need: a delivery that needs a slot, a connection, a
 * lock or a statement of an attempt that hangs does not arrive before one of them has ended.
 */
const TIMEOUT_MS = 20_000;

type Account = { wabaId: string; phoneNumberId: string; displayPhoneNumber: string };

const accounts: Account[] = Array.from({ length: WABAS }, (_, n) => ({
  wabaId: `90000000000100${n}`,
  phoneNumberId: `80000000000100${n}`,
  displayPhoneNumber: '12025550100',
}));

test(`${HANGING} endpoints that hang and ${FAILING} that fail do not delay ${HEALTHY} healthy ones beside them, and lose nothing`, async () => {
  const { database, url } = await testDatabase();
  await seedAccounts(database);
  const receiver = await startReceivers();
  for (let n = 0; n < HEALTHY; n += 1) await addEndpoint(database, wabaOf(n), `${receiver.url}/healthy/${n}`);
  const bad = await addBadEndpoints(database, receiver);
  const worker = startWorkerProcess(
    testSettings(url, {
      HELIOGRAPH_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS),
      HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '1,2,5,5,5,5,5,5,5,5',
    }),
  );
  try {
    await worker.ready();
    await send(database, 1_000);
    await eventually('all that hang have an attempt', () => receiver.hanging.size, { is: HANGING });
    const expected = await send(database, PHASE_MS);
    await eventually('the healthy endpoints have everything', () =>
      expected.every((arrival) => receiver.arrivals.has(arrival)),
    );
    expect(receiver.ended, 'attempts that hang have ended').toBe(0);
    await expectKept(database, bad);
  } finally {
    // Its attempts would be waited for.
    await receiver.close();
    await worker.stop();
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
  /** What arrived at the healthy endpoints: path and eventId. */
  arrivals: Set<string>;
  /** The paths at which an attempt hangs, and how many such attempts have ended. */
  hanging: Set<string>;
  readonly ended: number;
  close(): Promise<void>;
};

/** All endpoints on one port: /healthy/<n> answers at once, /hanging/<n> never, /failing/<n> with 500. */
async function startReceivers(): Promise<Receivers> {
  const [arrivals, hanging] = [new Set<string>(), new Set<string>()];
  let ended = 0;
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? '';
    request.resume();
    if (path.startsWith('/hanging/')) {
      hanging.add(path);
      response.once('close', () => {
        ended += 1;
      });
      return;
    }
    if (path.startsWith('/healthy/')) arrivals.add(`${path} ${request.headers['x-service-event-id']}`);
    request.once('end', () => response.writeHead(path.startsWith('/failing/') ? 500 : 200).end());
  };
  const server = await listening(createServer(answer));
  const refusing = await listening(createServer());
  const [url, refusingUrl] = [urlOf(server), urlOf(refusing)];
  await closed(refusing);
  return {
    url,
    refusingUrl,
    arrivals,
    hanging,
    get ended() {
      return ended;
    },
    close: () => closed(server),
  };
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

let messages = 0;

/** Sends at the steady rate; returns what must arrive at the healthy endpoints. */
async function send(database: Database, durationMs: number): Promise<string[]> {
  const expected: string[] = [];
  const startMs = performance.now();
  for (let n = 0; n < (durationMs / 1_000) * BODIES_PER_SECOND; n += 1) {
    await sleep(startMs + (n * 1_000) / BODIES_PER_SECOND - performance.now());
    const account = accounts[n % WABAS];
    if (account === undefined) continue;
    const eventId = `wamid.ISOLATION${messages}`;
    messages += 1;
    for (let endpoint = n % WABAS; endpoint < HEALTHY; endpoint += WABAS) {
      expected.push(`/healthy/${endpoint} ${eventId}`);
    }
    await insertBodies(database, [bodyOf(account, [textMessage(eventId, 'hello')])]);
  }
  return expected;
}

/** Six endpoints that go wrong, in the WABAs of the healthy ones. */
async function addBadEndpoints(database: Database, { url, refusingUrl }: Receivers): Promise<string[]> {
  const urls = [
    ...Array.from({ length: HANGING }, (_, n) => `${url}/hanging/${n}`),
    ...[`${refusingUrl}/refusing`, `${url}/failing/0`],
  ];
  const bad: string[] = [];
  for (const [n, badUrl] of urls.entries()) {
    bad.push((await addEndpoint(database, wabaOf(HEALTHY + n), badUrl)).id);
  }
  return bad;
}

/** Each of the bad endpoints keeps all of its events; those that answer or refuse were tried. */
async function expectKept(database: Database, bad: readonly string[]): Promise<void> {
  const kept = await query<{ published: number; queued: number; attempted: number }>(
    database,
    `select (select count(*) from deliveries d where d.endpoint_id = w.id)::integer as published,
            (select count(*) from delivery_queue q where q.endpoint_id = w.id)::integer as queued,
            (select count(*) from attempts a where a.endpoint_id = w.id)::integer as attempted
       from webhook_endpoints w where w.id = any (cast(:bad as bigint[])) order by w.id`,
    { bad },
  );
  expect(kept).toHaveLength(HANGING + FAILING);
  for (const { published, queued } of kept) {
    expect(published).toBeGreaterThan(0);
    expect(queued).toBe(published);
  }
  for (const { attempted } of kept.slice(HANGING)) expect(attempted).toBeGreaterThan(0);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
