import type { Client } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { startRunUpkeep } from '../../../src/engine/deliveries/dispatch/run-upkeep.ts';
import { TroubleWatch } from '../../../src/engine/deliveries/dispatch/trouble-watch.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { connectTemporal } from '../../../src/platform/temporal/worker-connection.ts';
import { ACCOUNT, bodyOf, messageStatus } from '../../support/load/upstream-bodies.ts';
import { makeOwnTemporal, type OwnTemporal } from '../../support/own-temporal.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { testEventIdHash } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, type Behaviour, eventually } from '../../support/webhook-receiver.ts';
import { workerBesideTemporal } from '../../support/worker-beside-temporal.ts';

/** How long Temporal stays frozen; `TEMPORAL_FROZEN_SECONDS=600` for a longer test. */
const FROZEN_SECONDS = Number(process.env.TEMPORAL_FROZEN_SECONDS ?? 15);

/** Of a webhook on a machine that does other things too. */
const SOON_MS = 3_000;

async function runningWorker() {
  const stack = await workerBesideTemporal();
  return { ...stack, client: await stack.temporal.connect() };
}

type Stack = Awaited<ReturnType<typeof runningWorker>>;

const attemptsOf = ({ receiver }: Pick<Stack, 'receiver'>, id: string) =>
  receiver.received.filter(({ headers }) => headers['x-service-event-id'] === id);

const isSettled = async (database: Database) =>
  (await query(database, 'select 1 from delivery_queue limit 1')).length === 0;

/** How many runs that show events of this id are open, or there at all. */
async function runsOf(client: Client, database: Database, id: string, more = ''): Promise<number> {
  const hash = await testEventIdHash(database)(id);
  const found = `WorkflowType = 'deliverEvent' and HeliographEventId = '${hash}'${more}`;
  return (await client.workflow.count(found)).count;
}

const OPEN = ` and ExecutionStatus = 'Running'`;

/** Refuses the first attempt of each event. */
const refuseFirst: Behaviour = (webhook, response) =>
  answer(webhook.headers['x-service-attempt'] === '1' ? 503 : 200)(webhook, response);

/** A ladder of three; returns how long its slowest step took beyond the second that each waits for its retry. */
async function ladderMs({ database, receiver }: Stack, id: string): Promise<number> {
  const steps = ['sent', 'delivered', 'read'];
  const startMs = performance.now();
  await insertBodies(
    database,
    steps.map((step) => bodyOf(ACCOUNT, [messageStatus(id, step)])),
  );
  await eventually(`${id} is delivered`, () => attemptsOf({ receiver }, id).length >= 6);
  const order = attemptsOf({ receiver }, id).map(
    ({ headers }) => `${headers['x-service-sequence']}.${headers['x-service-attempt']}`,
  );
  expect(order).toEqual(['1.1', '1.2', '2.1', '2.2', '3.1', '3.2']);
  return performance.now() - startMs;
}

test(
  'Temporal frozen while traffic with failures goes on: nothing waits for it, and runs appear again when it is back',
  async () => {
    const stack = await runningWorker();
    const { temporal, database, receiver, client } = stack;
    receiver.behave(refuseFirst);
    await ladderMs(stack, 'wamid.BEFORE');
    temporal.freeze();
    const untilMs = performance.now() + FROZEN_SECONDS * 1_000;
    const tookMs: number[] = [];
    for (let n = 0; performance.now() < untilMs; n += 1)
      tookMs.push(await ladderMs(stack, `wamid.FROZEN${n}`));
    // The first may wait for the call that finds out; after it each retry comes at its time, within 1.2 s.
    const [first = 0, ...others] = tookMs;
    const slowest = Math.max(...others);
    process.stdout.write(
      `Temporal frozen for ${FROZEN_SECONDS} s: ${tookMs.length} ladders, first ${Math.round(first)} ms, then at most ${Math.round(slowest)} ms\n`,
    );
    expect(slowest).toBeLessThan(3 * 1_200 + SOON_MS);
    expect(first).toBeLessThan(3 * 1_200 + SOON_MS + 6_000);
    temporal.thaw();
    let n = 0;
    await eventually('a run shows what fails now', async () => {
      n += 1;
      // Each ladder ends well: an endpoint that only refuses would be left alone, and nothing attempted.
      await ladderMs(stack, `wamid.BACK${n}`);
      return (await runsOf(client, database, `wamid.BACK${n}`)) > 0;
    });
    for (const { headers, status } of receiver.received) {
      const attempt = Number(headers['x-service-attempt']);
      expect([headers['x-service-event-id'], attempt, status === 200]).toEqual([
        headers['x-service-event-id'],
        attempt,
        attempt === 2,
      ]);
    }
  },
  (FROZEN_SECONDS + 300) * 1_000,
);

test('the loops that show deliveries and endpoints in Temporal give a frozen one up, and go on when it is back', async () => {
  const temporal = await makeOwnTemporal();
  await temporal.start();
  const { database, url } = await testDatabase();
  const config = loadConfig(testSettings(url, { HELIOGRAPH_TEMPORAL_ADDRESS: temporal.address }));
  const { client, connection } = await connectTemporal(config.temporal);
  onTestFinished(() => connection.close());
  const shared = { client, database, logger: silentLogger, taskQueue: 'frozen', isLeader: () => true };
  const runs = {
    start: async () => false,
    wait: async () => {},
    end: async () => true,
    cancel: async () => {},
  };
  const watch = new TroubleWatch();
  const loops = {
    runUpkeep: startRunUpkeep({ ...shared, runs }, { pollMs: 100, leastAgeMs: 0 }),
    troubleWatch: watch.start(shared),
  };
  onTestFinished(async () => void (await Promise.all(Object.values(loops).map((loop) => loop.stop()))));
  const areWell = () => Object.values(loops).every((loop) => loop.status().failingMs === 0);
  await eventually('both look', () => Object.values(loops).every((loop) => loop.status().sinceTurnMs < 100));
  temporal.freeze();
  // Opens a run, which does not come.
  watch.closed(['7']);
  const frozenMs = performance.now();
  for (const [name, loop] of Object.entries(loops))
    await eventually(`${name} gives up`, () => loop.status().failingMs > 0);
  // Ten seconds, and not the patience of the client.
  expect(performance.now() - frozenMs).toBeLessThan(30_000);
  temporal.thaw();
  await eventually('both go on', areWell);
});

/** Long enough for Temporal to lose its data and to be back. */
const RETRY_AFTER_SECONDS = 9;

/** A run that is lost does not come for its attempt; after this time a loop makes it. */
const RUN_GRACE_MS = 3_000;

/** Temporal with nothing of what it had, as after the loss of its database. */
async function loseHistories(temporal: OwnTemporal): Promise<void> {
  await temporal.loseData();
  await temporal.start();
}

test('Temporal lost its histories: what waits is attempted at its time and once, in order, and shown by new runs', async () => {
  const stack = await runningWorker();
  const { temporal, database, receiver } = stack;
  receiver.behave((webhook, response) => {
    const attempt = Number(webhook.headers['x-service-attempt']);
    return answer(attempt < 3 ? 503 : 200, attempt < 3 ? { 'retry-after': String(RETRY_AFTER_SECONDS) } : {})(
      webhook,
      response,
    );
  });
  const ids = ['wamid.LOST1', 'wamid.LOST2', 'wamid.LOST3'];
  for (const step of ['sent', 'delivered']) {
    await insertBodies(database, [
      bodyOf(
        ACCOUNT,
        ids.map((id) => messageStatus(id, step)),
      ),
    ]);
  }
  for (const id of ids)
    await eventually(`a run shows ${id}`, async () => (await runsOf(stack.client, database, id, OPEN)) > 0);
  await loseHistories(temporal);
  const client = await temporal.connect();
  for (const id of ids)
    await eventually(
      `a new run shows ${id}`,
      async () => (await runsOf(client, database, id).catch(() => 0)) > 0,
    );
  await eventually('all is delivered', () => isSettled(database));
  for (const id of ids) {
    const attempts = attemptsOf(stack, id);
    const names = attempts.map(
      ({ headers }) => `${headers['x-service-sequence']}.${headers['x-service-attempt']}`,
    );
    expect(names).toEqual(['1.1', '1.2', '1.3', '2.1', '2.2', '2.3']);
    const waitsMs = attempts.slice(1).map(({ arrivedMs }, n) => arrivedMs - (attempts[n]?.answeredMs ?? 0));
    expect(Math.max(...waitsMs)).toBeLessThan(1_000 * RETRY_AFTER_SECONDS + RUN_GRACE_MS + 2 * SOON_MS);
  }
  await eventually('no run is left open', async () => {
    const open = `WorkflowType = 'deliverEvent' and ExecutionStatus = 'Running'`;
    return (await client.workflow.count(open)).count === 0;
  });
});
