import { expect, onTestFinished } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { ACCOUNT, bodyOf, messageStatus } from '../../support/load/upstream-bodies.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import {
  answer,
  type Behaviour,
  eventually,
  type ReceivedWebhook,
  startReceiver,
} from '../../support/webhook-receiver.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

/** Even twice as many failures do not open the breaker of the endpoint: nothing of it is probed. */
export const KEYS = ['a', 'b', 'c', 'd'].map((key) => `wamid.${key}`);
export const LADDER = ['sent', 'delivered', 'read'];
/** The longest: a busy machine must not make attempts of a server that takes them fail. */
const SETTINGS = { HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '20000' };
/** For attempts of which four time out, each twice. */
const IMPATIENT = { HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '3000' };
const SCHEDULE_SECONDS = '{1,43200,86400}';

export const keyOf = ({ headers }: ReceivedWebhook) => String(headers['x-service-event-id']);

/** A worker in a process, which can be killed. */
export async function workerProcess(url: string): Promise<WorkerProcess> {
  const worker = startWorkerProcess(testSettings(url, SETTINGS));
  onTestFinished(() => worker.kill());
  await worker.ready();
  return worker;
}

/** A worker in the process of the tests, which starts sooner. */
export async function workerHere(url: string, settings: Record<string, string> = SETTINGS): Promise<void> {
  const worker = await startWorker(loadConfig(testSettings(url, settings)), silentLogger);
  onTestFinished(() => worker.stop());
}

/** As `workerHere`, and an attempt without a response times out after a few seconds. */
export const impatientWorkerHere = (url: string): Promise<void> => workerHere(url, IMPATIENT);

type Down = { whileDown?: Behaviour; maxInFlight?: number | null };

/** A server that has been down for so long that the next attempts are 12 hours away. */
export async function downServer<T = void>(
  { whileDown = answer(503), maxInFlight = null }: Down,
  work: (url: string) => Promise<T>,
) {
  const { database, url } = await seededDatabase();
  const receiver = await startReceiver(whileDown);
  onTestFinished(() => receiver.close());
  await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  await execute(
    database,
    `update webhook_endpoints set retry_schedule_seconds = '${SCHEDULE_SECONDS}', max_in_flight = :maxInFlight`,
    { maxInFlight },
  );
  const send = (key: string, step: string) =>
    insertBodies(database, [bodyOf(ACCOUNT, [messageStatus(key, step)])]);
  const worker = await work(url);
  for (const step of LADDER)
    await insertBodies(database, [
      bodyOf(
        ACCOUNT,
        KEYS.map((key) => messageStatus(key, step)),
      ),
    ]);
  await eventually('all wait', async () => (await waitingFor(database)).length, { is: KEYS.length });
  expect(await countQueued(database)).toBe(KEYS.length * LADDER.length);
  return { database, url, receiver, worker, send };
}

type Waiting = { id: string; at: number; retriesUsed: number };

/** Heads whose next attempts are hours away. */
export const waitingFor = (database: Database) =>
  query<Waiting>(
    database,
    `select delivery_id as id, cast(extract(epoch from next_attempt_at) as float8) as at,
            attempts - probes as "retriesUsed"
       from delivery_queue where state = 'retrying' and next_attempt_at > now() + interval '1 hour' order by position`,
  );

export async function countQueued(database: Database): Promise<number> {
  const [row] = await query<{ n: number }>(database, 'select count(*)::integer as n from delivery_queue');
  return row?.n ?? 0;
}

export const succeeded = (received: readonly ReceivedWebhook[]) =>
  received.filter(({ status }) => status === 200);

export function expectAllInOrder(received: readonly ReceivedWebhook[]): void {
  for (const key of KEYS) {
    const steps = succeeded(received).filter((webhook) => keyOf(webhook) === key);
    expect(steps.map(({ body }) => JSON.parse(body).data.status.status)).toEqual(LADDER);
  }
}
