import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, Connection } from '@temporalio/client';
import { expect, inject, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { taskQueues } from '../../../src/platform/temporal/workflow-options.ts';
import { bodyOf, messageStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const DEAD = {
  wabaId: '900000000000101',
  phoneNumberId: '800000000000111',
  displayPhoneNumber: '12025550100',
};
const OTHER = { ...DEAD, wabaId: '900000000000202', phoneNumberId: '800000000000221' };

const LADDER = ['sent', 'delivered', 'read', 'played'];
const EVENTS = 20_000;
const KEYS = EVENTS / LADDER.length;
const ITEMS_PER_BODY = 20;
/** Bodies that arrive at once: 1,000 events, so that the other tenant's are never behind more in the inbox. */
const BODIES_AT_ONCE = 50;

/**
 * Open workflows of the dead endpoint: 20 failing deliveries, beside at most 10 first attempts that
 * were handed over and one probe. Some more for those that are about to end: they hand their delivery back in that moment.
 */
const MAX_OPEN_WORKFLOWS = 40;

/**
 * So many events of the flood may be published between a message of the other tenant and its first attempt. Behind the
 * flood it would be most of the flood. It is a count, so a slow machine changes nothing.
 */
const ALLOWED_PASSED = 4_000;
const TRICKLE_INTERVAL_MS = 200;

test(`an endpoint that is down keeps ${EVENTS} events with few workflows, disturbs nobody, and gets all in order once it is back`, async () => {
  const { database, url } = await seededDatabase();
  const settings = testSettings(url, { HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '2000' });
  const dead = await startCountingReceiver();
  await dead.close();
  const other = await startCountingReceiver();
  const { id: deadId } = await addEndpoint(database, DEAD.wabaId, `http://127.0.0.1:${dead.port}/hook`);
  const { id: otherId } = await addEndpoint(database, OTHER.wabaId, `http://127.0.0.1:${other.port}/hook`);
  const worker = startWorkerProcess(settings);
  const trickle = makeTrickle(database);
  const watch = await watchOpenWorkflows(database, deadId, settings);
  const figures: Record<string, number> = {};
  try {
    await worker.ready();
    trickle.start();
    const startMs = performance.now();
    await flood(database);
    await eventually('everything is queued', async () => (await countQueued(database, deadId)) === EVENTS);
    figures.intakeMs = performance.now() - startMs;
    await eventually('probing', () => modeOf(database, deadId), { is: 'probing' });
    // A while of nothing but probes and retries of the first attempts.
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    expect(await countQueued(database, deadId)).toBe(EVENTS);
    figures.attemptsWhileDown = await countAttempts(database, deadId);
    expect(figures.attemptsWhileDown).toBeLessThan(200);

    await dead.open();
    const backMs = performance.now();
    await eventually('all delivered', () => countQueued(database, deadId), { is: 0 });
    figures.catchUpMs = performance.now() - backMs;
    expect(dead.ids.size).toBe(EVENTS);
    expect(dead.violations).toEqual([]);
    expect([...dead.lastOfKey.values()].every((sequence) => sequence === LADDER.length)).toBe(true);
    expect(dead.lastOfKey.size).toBe(KEYS);
    expect(await modeOf(database, deadId)).toBe('open');
    await eventually('its tenant is notified', () => alertsOf(database, deadId), {
      is: ['failing', 'recovered'],
    });

    figures.mostOpenWorkflows = await watch.stop();
    figures.samples = watch.samples();
    expect(figures.samples).toBeGreaterThan(20);
    expect(figures.mostOpenWorkflows).toBeGreaterThan(0);
    expect(figures.mostOpenWorkflows).toBeLessThanOrEqual(MAX_OPEN_WORKFLOWS);

    const sentMs = await trickle.stop();
    await eventually('the other tenant has everything', () => other.ids.size === sentMs.size);
    await eventually('its attempts are recorded', () => countAttempts(database, otherId), {
      is: sentMs.size,
    });
    figures.mostPassed = await mostPassed(database, sentMs);
    expect(figures.mostPassed).toBeLessThan(ALLOWED_PASSED);
  } finally {
    await trickle.stop();
    await watch.stop();
    if (process.env.HELIOGRAPH_TEST_FIGURES !== undefined)
      process.stderr.write(`${JSON.stringify(figures)}\n`);
    await worker.stop();
    await Promise.all([dead.close(), other.close()]);
  }
});

/** A status ladder per key, step by step over all keys, in bodies of 20. */
async function flood(database: Database): Promise<void> {
  const statuses = LADDER.flatMap((step) =>
    Array.from({ length: KEYS }, (_, n) => messageStatus(`wamid.DEAD${n}`, step)),
  );
  const bodies: Buffer[] = [];
  for (let from = 0; from < statuses.length; from += ITEMS_PER_BODY) {
    bodies.push(bodyOf(DEAD, statuses.slice(from, from + ITEMS_PER_BODY)));
  }
  for (let from = 0; from < bodies.length; from += BODIES_AT_ONCE) {
    await insertBodies(database, bodies.slice(from, from + BODIES_AT_ONCE));
    await eventually('taken in', async () => {
      const waiting = await query(
        database,
        `select 1 from inbox where state = 'new' limit ${BODIES_AT_ONCE}`,
      );
      return waiting.length < BODIES_AT_ONCE;
    });
  }
}

type CountingReceiver = {
  port: number;
  /** Of webhooks. */
  ids: Set<string>;
  lastOfKey: Map<string, number>;
  /** Events that arrived first when it was not their turn in their key. */
  violations: string[];
  open(): Promise<void>;
  close(): Promise<void>;
};

/** A receiver that notes what it needs of 20,000 webhooks; it can be closed and opened again at the same port. */
async function startCountingReceiver(): Promise<CountingReceiver> {
  let server: Server | null = null;
  const noted = {
    ids: new Set<string>(),
    lastOfKey: new Map<string, number>(),
    violations: [] as string[],
  };
  const open = async (port: number) => {
    server = createServer((request, response) => {
      const key = String(request.headers['x-service-event-id']);
      const sequence = Number(request.headers['x-service-sequence']);
      const id = String(request.headers['webhook-id']);
      const last = noted.lastOfKey.get(key) ?? 0;
      if (sequence !== last + 1 && !noted.ids.has(id))
        noted.violations.push(`${key}: ${sequence} after ${last}`);
      request.resume();
      request.once('end', () => {
        noted.ids.add(id);
        noted.lastOfKey.set(key, Math.max(last, sequence));
        response.end();
      });
    });
    await new Promise<void>((resolve, reject) => {
      server?.once('error', reject);
      server?.listen(port, '127.0.0.1', resolve);
    });
    return (server.address() as AddressInfo).port;
  };
  const port = await open(0);
  const close = async () => {
    const closing = server;
    server = null;
    if (closing === null) return;
    const end = new Promise((resolve) => closing.close(resolve));
    closing.closeAllConnections();
    await end;
  };
  return {
    ...noted,
    port,
    open: async () => {
      await open(port);
    },
    close,
  };
}

/** The other tenant's events, a few per second; `stop` returns when each was sent, in ms since 1970, by eventId. */
function makeTrickle(database: Database) {
  const sentMs = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  const send = () => {
    const id = `wamid.TRICKLE${sentMs.size}`;
    sentMs.set(id, Date.now());
    void insertBodies(database, [bodyOf(OTHER, [textMessage(id, 'hello')])]);
  };
  return {
    start: () => {
      timer = setInterval(send, TRICKLE_INTERVAL_MS);
    },
    stop: async () => {
      clearInterval(timer);
      return sentMs;
    },
  };
}

/** The most events of the flood that were published between a message of the other tenant and its first attempt. */
async function mostPassed(database: Database, sentMs: ReadonlyMap<string, number>): Promise<number> {
  const [row] = await query<{ most: number }>(
    database,
    `select max(passed.n) as most
       from unnest(cast(:ids as text[]), cast(:times as float8[])) as sent (event_id, ms)
       join events e on e.waba_id = :other and e.event_id = sent.event_id
       join deliveries d on d.event_uuid = e.id
       join attempts a on a.delivery_id = d.id and a.attempt = 1
      cross join lateral (
        select count(*)::integer as n from events f
         where f.waba_id = :dead and f.created_at between to_timestamp(sent.ms / 1000) and a.started_at) as passed`,
    { ids: [...sentMs.keys()], times: [...sentMs.values()], other: OTHER.wabaId, dead: DEAD.wabaId },
  );
  return row?.most ?? Number.NaN;
}

/** Counts what Temporal has open for the endpoint, and what the database says it has, all the time. */
async function watchOpenWorkflows(database: Database, endpointId: string, settings: Record<string, string>) {
  const connection = await Connection.connect({ address: inject('infrastructure').temporalAddress });
  const client = new Client({ connection });
  const { deliveries } = taskQueues(settings.HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX ?? '');
  const filter = `TaskQueue = '${deliveries}' and WorkflowId starts_with 'delivery/${endpointId}/' and ExecutionStatus = 'Running'`;
  let [most, samples, stopping] = [0, 0, false];
  const sample = async () => {
    while (!stopping) {
      const [{ count }, rows] = await Promise.all([
        client.workflow.count(filter),
        query(database, `select 1 from delivery_queue where endpoint_id = :endpointId and run = 'room'`, {
          endpointId,
        }),
      ]);
      most = Math.max(most, count, rows.length);
      samples += 1;
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
  };
  let failure: unknown = null;
  const running = sample().catch((error: unknown) => {
    failure = error;
  });
  return {
    samples: () => samples,
    /** Most at any time. */
    stop: async () => {
      if (!stopping) {
        stopping = true;
        await running;
        await connection.close();
      }
      if (failure !== null) throw failure;
      return most;
    },
  };
}

async function countOf(database: Database, text: string, endpointId: string): Promise<number> {
  const [row] = await query<{ n: number }>(database, text, { endpointId });
  return row?.n ?? Number.NaN;
}

const countQueued = (database: Database, id: string) =>
  countOf(database, 'select count(*)::integer as n from delivery_queue where endpoint_id = :endpointId', id);

const countAttempts = (database: Database, id: string) =>
  countOf(database, 'select count(*)::integer as n from attempts where endpoint_id = :endpointId', id);

async function modeOf(database: Database, id: string): Promise<string | undefined> {
  const [row] = await query<{ mode: string }>(
    database,
    'select mode from endpoint_health where endpoint_id = :id',
    {
      id,
    },
  );
  return row?.mode;
}

async function alertsOf(database: Database, id: string): Promise<string[]> {
  const rows = await query<{ alert: string }>(
    database,
    'select alert from alert_notices where endpoint_id = :id order by created_at',
    { id },
  );
  return rows.map(({ alert }) => alert);
}
