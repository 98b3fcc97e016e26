import { Client, Connection } from '@temporalio/client';
import { RUN_ROOM } from '../../src/engine/deliveries/judge-outcome.ts';
import { apiKeyHints, hashApiKey, newApiKey } from '../../src/features/keys/api-key.ts';
import { insertApiKey } from '../../src/features/keys/api-key-store.ts';
import type { Installation } from './installation.ts';
import type { EndpointName } from './load.ts';
import type { Row } from './report.ts';
import { NAMESPACE } from './temporal.ts';
import type { Bench } from './throughput.ts';

const WORKERS = 8;

/** Start-up allowance and retry budget: starts per second and core, for the installation. */
const STARTS_PER_SECOND = 10;
const SAVED_STARTS = 20;

/** What is limited for the installation, asked of eight workers and three APIs. */
export async function limits(bench: Bench): Promise<Row[]> {
  await bench.installation.setWorkers(WORKERS);
  const rows = [
    await allowance(bench),
    ...(await retryBudget(bench)),
    await ratePerEndpoint(bench),
    await atOncePerEndpoint(bench),
    await ratePerKey(bench),
  ];
  for (const { what, figure } of rows) bench.log(`limits, ${what}: ${figure}`);
  await bench.installation.setWorkers(0);
  return rows;
}

/** More comes than may have a workflow; each worker alone would still call its part of it calm. */
async function allowance({ installation, load, quick }: Bench): Promise<Row> {
  const seconds = quick ? 10 : 20;
  const before = await countWorkflows(installation);
  const count = 4 * STARTS_PER_SECOND * seconds;
  await load.run({ to: 'fast', count, ratePerSecond: 4 * STARTS_PER_SECOND });
  const started = (await countWorkflows(installation)) - before;
  const most = STARTS_PER_SECOND * seconds + SAVED_STARTS;
  return row(`deliveries with a workflow, of ${count} in ${seconds} s`, started, most);
}

/** Every first attempt fails. */
async function retryBudget({ installation, load, quick }: Bench): Promise<Row[]> {
  const seconds = quick ? 10 : 20;
  const before = await countWorkflows(installation);
  const watch = watchOpen(installation);
  const count = 8 * STARTS_PER_SECOND * seconds;
  await load.run({ to: 'fails-first', count, ratePerSecond: 8 * STARTS_PER_SECOND });
  const mostOpen = await watch.stop();
  const started = (await countWorkflows(installation)) - before;
  const most = Math.min(STARTS_PER_SECOND * (seconds + 3) + SAVED_STARTS, count);
  return [
    row(`workflows for ${count} failed attempts in ${seconds} s`, started, most),
    row('of them open at a time', mostOpen, RUN_ROOM.overall),
  ];
}

async function ratePerEndpoint({ load, quick }: Bench): Promise<Row> {
  const perSecond = 40;
  const { arrivedMs } = await load.run({
    to: 'few-per-second' satisfies EndpointName,
    ratePerSecond: null,
    count: perSecond * (quick ? 8 : 20),
  });
  // What is saved up may come at once at the beginning: a second's worth.
  const later = arrivedMs.filter((ms) => ms > (arrivedMs[0] ?? 0) + 2_000);
  const span = ((later.at(-1) ?? 0) - (later[0] ?? 0)) / 1_000;
  return row(
    `webhooks per second, endpoint with ${perSecond}`,
    Math.round(later.length / span),
    perSecond * 1.05,
  );
}

async function atOncePerEndpoint({ load, quick }: Bench): Promise<Row> {
  const result = await load.run({ to: 'few-at-once', count: quick ? 150 : 300, ratePerSecond: null });
  return row('webhooks at a time, endpoint with 16', result.mostAtOnce, 16);
}

const READS_PER_SECOND = 100;
const WINDOW_SECONDS = 10;
/** Ends before the next window begins. */
const ASKED_MS = 9_500;

/** One key, all three APIs, as fast as they answer. */
async function ratePerKey({ installation, load }: Bench): Promise<Row> {
  const key = newApiKey();
  const { prefix, last4 } = apiKeyHints(key);
  const fields = { name: 'cluster', keyHash: hashApiKey(key), prefix, lastFour: last4, expiresAt: null };
  await insertApiKey(installation.database, load.target('fast').wabaId, fields);
  const { host, port } = installation.ingress;
  const headers = { authorization: `Bearer ${key}` };
  const untilMs = performance.now() + ASKED_MS;
  let passed = 0;
  let refused = 0;
  const ask = async () => {
    while (performance.now() < untilMs) {
      const response = await fetch(`http://${host}:${port}/me`, { headers });
      await response.body?.cancel();
      if (response.status === 200) passed += 1;
      else refused += 1;
    }
  };
  await Promise.all(Array.from({ length: 16 }, ask));
  const most = READS_PER_SECOND * WINDOW_SECONDS;
  // Each API counts a little ahead.
  return row(`requests of one key in ${WINDOW_SECONDS} s (${refused} refused)`, passed, 1.1 * most);
}

function row(what: string, figure: number, most: number): Row {
  const target = `≤ ${Math.round(most)}`;
  return { scenario: 'limits', what, figure: String(figure), target, isMet: figure <= most };
}

const DELIVERIES = 'WorkflowType = "deliverEvent"';

/** Visibility follows within a moment. */
async function countWorkflows(installation: Installation, filter = ''): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  return await askTemporal(installation, (client) =>
    client.workflow.count(DELIVERIES + filter).then((r) => r.count),
  );
}

async function askTemporal<T>({ machine }: Installation, work: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address: `${machine('temporal-lb').address}:7233` });
  try {
    return await work(new Client({ connection, namespace: NAMESPACE }));
  } finally {
    await connection.close();
  }
}

function watchOpen(installation: Installation): { stop(): Promise<number> } {
  let most = 0;
  const stopping = new AbortController();
  const watching = askTemporal(installation, async (client) => {
    while (!stopping.signal.aborted) {
      const { count } = await client.workflow.count(`${DELIVERIES} AND ExecutionStatus = "Running"`);
      most = Math.max(most, count);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  });
  return {
    stop: async () => {
      stopping.abort();
      await watching;
      return most;
    },
  };
}
