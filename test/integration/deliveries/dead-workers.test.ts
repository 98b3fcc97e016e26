import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, messageStatus } from '../../support/load/upstream-bodies.ts';
import { makeOwnTemporal, type OwnTemporal } from '../../support/own-temporal.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import {
  answer,
  type Behaviour,
  eventually,
  startReceiver,
  type WebhookReceiver,
} from '../../support/webhook-receiver.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

/** A lease lasts twice as long. */
const TIMEOUT_MS = 5_000;

/** What every lane is promised after its worker died, with Temporal away. */
const GOES_ON_WITHIN_MS = 40_000;

type Installation = {
  database: Database;
  receiver: WebhookReceiver;
  temporal: OwnTemporal;
  startWorker: () => WorkerProcess;
};

/** Temporal runs; each of `paths` is an endpoint. */
async function installation(paths: readonly string[]): Promise<Installation> {
  const temporal = await makeOwnTemporal();
  await temporal.start();
  const { database, url } = await seededDatabase(20);
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  for (const path of paths) await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/${path}`);
  const settings = testSettings(url, {
    HELIOGRAPH_TEMPORAL_ADDRESS: temporal.address,
    HELIOGRAPH_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS),
  });
  const startWorker = () => {
    const worker = startWorkerProcess(settings);
    onTestFinished(() => worker.kill());
    return worker;
  };
  return { database, receiver, temporal, startWorker };
}

/** Stores a status of each of these messages, one body per step. */
async function sendLadders(
  database: Database,
  ids: readonly string[],
  steps: readonly string[],
): Promise<void> {
  await insertBodies(
    database,
    steps.map((step) =>
      bodyOf(
        ACCOUNT,
        ids.map((id) => messageStatus(id, step)),
      ),
    ),
  );
}

const countOf = async (database: Database, condition: string) =>
  (await query(database, `select 1 from delivery_queue where ${condition}`)).length;

const isSettled = async (database: Database) => (await countOf(database, 'true')) === 0;

/** By endpoint and ordering key: the sequence numbers in the order in which they were accepted. */
function acceptedLanes({ received }: WebhookReceiver, sinceMs = 0): Map<string, number[]> {
  const lanes = new Map<string, number[]>();
  for (const { path, headers, status, arrivedMs } of received) {
    if (status !== 200 || arrivedMs < sinceMs) continue;
    const lane = `${path} ${headers['x-service-event-id']}`;
    lanes.set(lane, [...(lanes.get(lane) ?? []), Number(headers['x-service-sequence'])]);
  }
  return lanes;
}

/** Never answers. */
const hang: Behaviour = (_webhook, response) =>
  new Promise((resolve) => response.on('close', () => resolve(null)));

/** How many retries are shown by runs when all workers die; a tenant may have 100. `DEAD_WORKERS_RETRIES=80` for a longer test. */
const RETRIES = Number(process.env.DEAD_WORKERS_RETRIES ?? 40);

/** Fewer than take an endpoint down. */
const REFUSED = Array.from({ length: 8 }, (_, n) => `wamid.REFUSED${n}`);
const HANGING = Array.from({ length: 5 }, (_, n) => `wamid.HANGING${n}`);

/** A few more endpoints than are needed: some failures come when no more runs may be started. */
const REFUSING_PATHS = Array.from(
  { length: Math.ceil((1.6 * RETRIES) / REFUSED.length) },
  (_, n) => `refuses/${n}`,
);
const HANGING_PATHS = Array.from({ length: 4 }, (_, n) => `hangs/${n}`);

/** Runs of failures that a process may start per second, when two share two cores. */
const STARTS_PER_SECOND = 5;

/** One after the other: more runs at once than are allowed would not be started. */
const SPREAD_MS = 4_000;

const refuseAndHang: Behaviour = async (webhook, response) => {
  const id = String(webhook.headers['x-service-event-id']);
  const place = REFUSING_PATHS.indexOf(webhook.path.slice(1));
  if (place >= 0 && REFUSED.includes(id)) {
    await sleep((SPREAD_MS * place) / REFUSING_PATHS.length);
    return answer(503, { 'retry-after': '300' })(webhook, response);
  }
  const hangs = webhook.path.startsWith('/hangs') && HANGING.includes(id);
  return (hangs ? hang : answer(200))(webhook, response);
};

test('all workers die with open claims and retries shown by runs while Temporal goes away: every lane goes on within 40 s', async () => {
  const paths = [...REFUSING_PATHS, ...HANGING_PATHS];
  const { database, receiver, temporal, startWorker } = await installation(paths);
  receiver.behave(refuseAndHang);
  const first = [startWorker(), startWorker()];
  await Promise.all(first.map((worker) => worker.ready()));
  for (const id of REFUSED) {
    await sendLadders(database, [id], ['sent', 'delivered']);
    await sleep((1_000 * REFUSING_PATHS.length) / STARTS_PER_SECOND);
  }
  const client = await temporal.connect();
  const running = `WorkflowType = 'deliverEvent' and ExecutionStatus = 'Running'`;
  let runs = 0;
  await eventually('the retries are left to runs', async () => {
    runs = (await client.workflow.count(running)).count;
    // On a busy machine Temporal refuses some, and their deliveries do not know.
    const retries = await countOf(database, `state = 'retrying' and run is not null`);
    return retries >= RETRIES && runs >= RETRIES / 2;
  });
  await sendLadders(database, HANGING, ['sent', 'delivered']);
  const claims = HANGING_PATHS.length * HANGING.length;
  await eventually('claims are open', async () => (await countOf(database, `state = 'claimed'`)) >= claims);
  await Promise.all(first.map((worker) => worker.kill()));
  temporal.freeze();
  receiver.behave(answer(200));
  // Five minutes, shortened.
  await execute(
    database,
    `update delivery_queue set next_attempt_at = now() + interval '10 seconds' where state = 'retrying'`,
  );
  const beginMs = performance.now();
  startWorker();
  startWorker();
  await eventually('everything is delivered', () => isSettled(database), GOES_ON_WITHIN_MS);
  const afterMs = Math.round(performance.now() - beginMs);
  process.stdout.write(`${RETRIES} retries, ${runs} runs: all lanes went on ${afterMs} ms after the start\n`);
  const lanes = [...acceptedLanes(receiver).values()];
  expect(lanes).toHaveLength(paths.length * (REFUSED.length + HANGING.length));
  // What was accepted while the workers died could not be recorded, and goes out once more; nothing else does.
  expect(lanes.filter((sequences) => !['1,2', '1,1,2', '1,2,2'].includes(sequences.join()))).toEqual([]);
  const since = [...acceptedLanes(receiver, beginMs).values()];
  expect(since.filter((sequences) => new Set(sequences).size < sequences.length)).toEqual([]);
});

test('the worker dies whose activity makes an attempt, and Temporal goes away: another worker makes it within 40 s, and what is behind it follows', async () => {
  const { database, receiver, temporal, startWorker } = await installation(['hook']);
  let healed = false;
  receiver.behave((webhook, response) => {
    if (healed) return answer(200)(webhook, response);
    if (webhook.headers['x-service-attempt'] === '1') return answer(500)(webhook, response);
    return hang(webhook, response);
  });
  const workers = [startWorker(), startWorker()];
  await Promise.all(workers.map((worker) => worker.ready()));
  const client = await temporal.connect();
  await sendLadders(database, ['wamid.A2'], ['sent', 'delivered', 'read']);
  /** The process whose activity has the claim: such an activity lasts, all others end at once. */
  const attempting = async () => {
    const pids: number[] = [];
    for await (const run of client.workflow.list({ query: `WorkflowType = 'deliverEvent'` })) {
      const { raw } = await client.workflow.getHandle(run.workflowId).describe();
      for (const { lastWorkerIdentity, state } of raw.pendingActivities ?? [])
        if (state === 2) pids.push(Number.parseInt(lastWorkerIdentity ?? '', 10));
    }
    return (await countOf(database, `state = 'claimed'`)) > 0 ? pids[0] : undefined;
  };
  let victim: number | undefined;
  await eventually('its activity makes an attempt', async () => {
    const before = await attempting();
    await sleep(500);
    victim = await attempting();
    return victim !== undefined && victim === before;
  });
  const dead = workers.find(({ child }) => child.pid === victim);
  expect(dead).toBeDefined();
  await dead?.kill();
  await temporal.stop();
  healed = true;
  const beginMs = performance.now();
  await eventually('all three arrive', () => isSettled(database), GOES_ON_WITHIN_MS);
  process.stdout.write(`the other worker went on after ${Math.round(performance.now() - beginMs)} ms\n`);
  expect([...acceptedLanes(receiver).values()]).toEqual([[1, 2, 3]]);
});
