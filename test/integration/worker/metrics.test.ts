import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findFreePorts } from '../../../dev/embedded/ports.ts';
import { RunShare } from '../../../src/engine/deliveries/loop/run-share.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import type { MetricsServer, Scrape } from '../../../src/platform/metrics/metrics-server.ts';
import { type DatabasePool, openDatabase } from '../../../src/platform/postgres/database.ts';
import { type HttpSender, makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { judgeHealth, startHealthServer } from '../../../src/worker/health.ts';
import { storeFigures } from '../../../src/worker/metrics/shared-figures.ts';
import { readSystemFigures } from '../../../src/worker/metrics/system-figures.ts';
import { makeWorkerMetrics, type WorkerMetrics } from '../../../src/worker/metrics/worker-metrics.ts';
import { makeWorkerScrape } from '../../../src/worker/metrics/worker-scrape.ts';
import { attemptHead, idleLoop } from '../../support/idle-loop.ts';
import { counted, samplesOf } from '../../support/metrics-text.ts';
import { intakeTools, takeInBatch } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { answer, startReceiver, type WebhookReceiver } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';
const OTHER_WABA = '900000000000202';

let receiver: WebhookReceiver;
let sender: HttpSender;
let health: MetricsServer | null;

beforeEach(async () => {
  health = null;
  receiver = await startReceiver();
  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  sender = makeHttpSender({ guard, allowHttp: true, connectTimeoutMs: 2_000, totalTimeoutMs: 5_000 });
});

afterEach(async () => {
  await health?.close();
  await sender.close();
  await receiver.close();
});

const PARTS = {
  isStopping: false,
  hasStarted: true,
  listenerDownMs: 0,
  hasSchema: true,
  temporalAwayMs: 0,
  loops: new Map(),
  deafMs: new Map(),
};

function scrapeOf(metrics: WorkerMetrics, database: DatabasePool, inFlight = 0): Scrape {
  const config = loadConfig(testSettings('postgresql://nobody@127.0.0.1/nothing'));
  const watch = { now: () => PARTS };
  return makeWorkerScrape(metrics, {
    config,
    database,
    pools: [database],
    watch,
    loop: { inFlight: () => inFlight },
    runs: { share: new RunShare() },
  });
}

/** As the leader does every 30 s. */
const readFigures = async (database: DatabasePool) =>
  await storeFigures(database, (await readSystemFigures(database, 10_000)).figures);

/** A worker's parts that count, on a database of their own; `scrape` asks over HTTP as Prometheus does. */
async function countingWorker() {
  const { database, url } = await seededDatabase();
  const metrics = makeWorkerMetrics();
  const port = await serve((): ReturnType<typeof makeWorkerScrape> => scrapeOf(metrics, database));
  const { loop } = idleLoop({ database, sender, onAttempt: metrics.attempt });
  const takeIn = async (...bodies: Buffer[]) => {
    await insertBodies(database, bodies);
    while (await takeInBatch({ ...intakeTools(database), onBody: metrics.inboxBody }));
  };
  const freshScrape = async () => {
    await readFigures(database);
    return await scrape(port);
  };
  return { database, url, attempt: () => attemptHead(database, loop), takeIn, scrape: freshScrape };
}

async function serve(makeScrape: Parameters<typeof startHealthServer>[0]['makeScrape']): Promise<number> {
  const [port = 0] = await findFreePorts(1);
  const state = async () => judgeHealth(PARTS);
  health = await startHealthServer({ host: '127.0.0.1', port, health: state, makeScrape });
  return port;
}

async function scrape(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ]);
  return await response.text();
}

describe('the metrics of a worker', () => {
  test('say exactly what became of bodies and deliveries', async () => {
    const worker = await countingWorker();
    await addEndpoint(worker.database, WABA, `${receiver.url}/hook`);
    await worker.takeIn(
      ...['st_sent_v24', 'st_delivered', 'st_read'].map(fixtureBody),
      Buffer.from('no JSON'),
    );
    await worker.attempt();
    await worker.attempt();
    receiver.behave(answer(503));
    await worker.attempt();

    const text = await worker.scrape();
    expect(counted(text, 'heliograph_inbox_bodies_total')).toEqual({
      '{outcome="done"}': 3,
      '{outcome="failed"}': 1,
    });
    expect(counted(text, 'heliograph_delivery_attempts_total')).toEqual({
      '{outcome="delivered",status="2xx"}': 2,
      '{outcome="retrying",status="5xx"}': 1,
    });
    const samples = samplesOf(text);
    expect(samples.get('heliograph_delivery_attempt_duration_seconds_count')).toBe(3);
    expect(samples.get('heliograph_delivery_latency_seconds_count')).toBe(2);
    expect(samples.get('heliograph_database_up')).toBe(1);
    expect(counted(text, 'heliograph_deliveries_pending')).toEqual({ '{state="retrying"}': 1 });
    expect(counted(text, 'heliograph_endpoints')).toEqual({ '{mode="open"}': 1 });
    expect(samples.get('heliograph_deliveries_oldest_pending_seconds')).toBeGreaterThan(0);
    expect(samples.get('heliograph_deliveries_oldest_due_seconds')).toBe(0);
    expect([samples.get('heliograph_inbox_backlog'), samples.get('heliograph_inbox_failed')]).toEqual([0, 1]);
  });

  test('tell how long something waits that could go out, and pass over endpoints that are switched off', async () => {
    const worker = await countingWorker();
    await addEndpoint(worker.database, WABA, `${receiver.url}/hook`);
    await addEndpoint(worker.database, OTHER_WABA, `${receiver.url}/other`);
    await worker.takeIn(fixtureBody('st_sent_v24'));
    await insertBodies(worker.database, [Buffer.from('{}')]);
    await worker.database.raw(
      `update delivery_queue set created_at = now() - interval '10 minutes';
       update endpoint_health set mode_changed_at = now() - interval '1 hour';
       update inbox set received_at = now() - interval '2 minutes' where state = 'new'`,
    );
    const samples = samplesOf(await worker.scrape());
    expect(Math.round((samples.get('heliograph_deliveries_oldest_due_seconds') ?? 0) / 60)).toBe(10);
    expect(Math.round((samples.get('heliograph_inbox_oldest_pending_seconds') ?? 0) / 60)).toBe(2);
    expect(samples.get('heliograph_inbox_backlog')).toBe(1);

    await worker.database.raw(`update endpoint_health set mode = 'paused'
      where endpoint_id in (select id from webhook_endpoints where waba_id = '${WABA}')`);
    await readFigures(worker.database);
    const again = scrapeOf(makeWorkerMetrics(), worker.database);
    const paused = samplesOf((await again()).text);
    expect(paused.get('heliograph_deliveries_oldest_due_seconds')).toBe(0);
    expect(paused.get('heliograph_endpoints{mode="paused"}')).toBe(1);
  });

  test("are answered while PostgreSQL is away, without PostgreSQL's figures", async () => {
    const [port = 0] = await findFreePorts(1);
    const url = `postgresql://nobody@127.0.0.1:${port}/nothing`;
    const database = openDatabase({ url, poolMax: 1, applicationName: 'test' });
    const metrics = makeWorkerMetrics();
    metrics.send('accepted');
    const own = await serve(() => scrapeOf(metrics, database, 3));
    const samples = samplesOf(await scrape(own));
    await database.destroy();
    expect(samples.get('heliograph_database_up')).toBe(0);
    expect(samples.has('heliograph_inbox_backlog')).toBe(false);
    expect(samples.get('heliograph_sends_total{outcome="accepted"}')).toBe(1);
    expect(samples.get('heliograph_deliveries_in_flight')).toBe(3);
  });

  test('name no tenant, endpoint, address or event', async () => {
    const worker = await countingWorker();
    await addEndpoint(worker.database, WABA, `${receiver.url}/hook`);
    await worker.takeIn(fixtureBody('st_sent_v24'));
    await worker.attempt();
    const text = await worker.scrape();
    expect(text).not.toMatch(new RegExp(`${WABA}|wamid|/hook|127\\.0\\.0\\.1|Fixture`));
  });

  test('leave /healthz and /readyz as they were, and nothing else is there', async () => {
    const port = await serve(() => async () => ({ contentType: 'text/plain', text: 'x' }));
    const paths = ['/healthz', '/readyz', '/', '/metrics/'];
    const answers = await Promise.all(paths.map((path) => fetch(`http://127.0.0.1:${port}${path}`)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 404, 404]);
  });
});
