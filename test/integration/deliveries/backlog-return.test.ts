import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/inbound/inbox.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { bodyOf, messageStatus } from '../../support/load/upstream-bodies.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import {
  answer,
  type Behaviour,
  eventually,
  type ReceivedWebhook,
  startReceiver,
} from '../../support/webhook-receiver.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

const ACCOUNT = {
  ...{ wabaId: '900000000000101', phoneNumberId: '800000000000111' },
  displayPhoneNumber: '12025550100',
};
/** Even twice as many failures do not open the breaker of the endpoint: nothing of it is probed. */
const KEYS = ['a', 'b', 'c', 'd'].map((key) => `wamid.${key}`);
const LADDER = ['sent', 'delivered', 'read'];
/** Of four that time out, each twice. */
const SETTINGS = { HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '1000' };
const SCHEDULE_SECONDS = '{1,43200,86400}';
/** For a loaded machine; it takes four. */
const WITHIN_MS = 30_000;

const keyOf = ({ headers }: ReceivedWebhook) => String(headers['x-service-event-id']);

/** A server that has been down for so long that the next attempts are 12 hours away. */
async function downServer(whileDown: Behaviour = answer(503), maxInFlight: number | null = null) {
  const { database, url } = await testDatabase();
  await seedFixtureAccounts(database);
  const receiver = await startReceiver(whileDown);
  onTestFinished(() => receiver.close());
  await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  await execute(
    database,
    `update webhook_endpoints set retry_schedule_seconds = '${SCHEDULE_SECONDS}', max_in_flight = ?`,
    [maxInFlight],
  );
  const work = async (): Promise<WorkerProcess> => {
    const worker = startWorkerProcess(testSettings(url, SETTINGS));
    onTestFinished(() => worker.kill());
    await worker.ready();
    return worker;
  };
  const send = (key: string, step: string) =>
    insertBodies(database, [bodyOf(ACCOUNT, [messageStatus(key, step)])]);
  const worker = await work();
  for (const step of LADDER)
    await insertBodies(database, [
      bodyOf(
        ACCOUNT,
        KEYS.map((key) => messageStatus(key, step)),
      ),
    ]);
  await eventually('all wait', async () => (await waitingFor(database)).length, { is: KEYS.length });
  expect(await countQueued(database)).toBe(KEYS.length * LADDER.length);
  return { database, receiver, work, worker, send };
}

type Waiting = { id: string; at: number; retriesUsed: number };

/** Heads whose next attempts are hours away. */
const waitingFor = (database: Database) =>
  query<Waiting>(
    database,
    `select delivery_id as id, cast(extract(epoch from next_attempt_at) as float8) as at,
            attempts - probes as "retriesUsed"
       from delivery_queue where state = 'retrying' and next_attempt_at > now() + interval '1 hour' order by position`,
  );

async function countQueued(database: Database): Promise<number> {
  const [row] = await query<{ n: number }>(database, 'select count(*)::integer as n from delivery_queue');
  return row?.n ?? 0;
}

/** In how many minutes what waits is brought forward; null: it is not planned. */
async function minutesUntilReturn(database: Database): Promise<number | null> {
  const [row] = await query<{ minutes: number | null }>(
    database,
    `select cast(extract(epoch from backlog_due_at - now()) / 60 as float8) as minutes from webhook_endpoints`,
  );
  return row?.minutes ?? null;
}

const succeeded = (received: readonly ReceivedWebhook[]) => received.filter(({ status }) => status === 200);

function expectAllInOrder(received: readonly ReceivedWebhook[]): void {
  for (const key of KEYS) {
    const steps = succeeded(received).filter((webhook) => keyOf(webhook) === key);
    expect(steps.map(({ body }) => JSON.parse(body).data.status.status)).toEqual(LADDER);
  }
}

test('a server that is back gets all that waits for it after one success, without help and in order', async () => {
  const { database, receiver, send } = await downServer();
  receiver.behave(answer(200));
  await send('wamid.new', 'sent');
  await eventually('all arrive', async () => (await countQueued(database)) === 0, WITHIN_MS);
  expectAllInOrder(receiver.received);
  // One attempt that fails, its retry, and the one that was brought forward.
  expect(receiver.received).toHaveLength(KEYS.length * (2 + LADDER.length) + 1);
}, 120_000);

/** Notes how many requests are answered side by side. */
function sideBySide() {
  const seen = { now: 0, most: 0 };
  const behaviour: Behaviour = async (webhook, response) => {
    seen.now += 1;
    seen.most = Math.max(seen.most, seen.now);
    // Long enough for all that are sent at once to meet.
    await new Promise((resolve) => setTimeout(resolve, 200));
    seen.now -= 1;
    return answer(200)(webhook, response);
  };
  return { seen, behaviour };
}

const MAX_IN_FLIGHT = 2;

test.each<[string, string | null, Behaviour]>([
  ['does not respond', 'timeout', () => null],
  [
    'resets connections',
    'reset',
    (_, response) => {
      response.socket?.resetAndDestroy();
      return null;
    },
  ],
  ['returns 429', null, answer(429)],
  ['returns 408', null, answer(408)],
])(
  'what waits because the server %s comes back too, never more at once than the endpoint allows',
  async (_, errorClass, whileDown) => {
    const { database, receiver, send } = await downServer(whileDown, MAX_IN_FLIGHT);
    const failures = await query<{ errorClass: string | null; status: number | null }>(
      database,
      `select distinct error_class as "errorClass", status_code as status from attempts`,
    );
    expect(failures).toEqual([{ errorClass, status: errorClass === null ? expect.any(Number) : null }]);
    const { seen, behaviour } = sideBySide();
    receiver.behave(behaviour);
    await send('wamid.new', 'sent');
    await eventually('all arrive', async () => (await countQueued(database)) === 0, WITHIN_MS);
    expectAllInOrder(receiver.received);
    expect(receiver.received).toHaveLength(KEYS.length * (2 + LADDER.length) + 1);
    expect(seen.most).toBe(MAX_IN_FLIGHT);
  },
  120_000,
);

test('what failed before the breaker opened goes out after the first good probe, too', async () => {
  const { database, receiver, send } = await downServer();
  for (let n = 0; n < 10; n += 1) await send(`wamid.more${n}`, 'sent');
  const isProbing = () => query(database, `select 1 from webhook_endpoints where mode = 'probing'`);
  await eventually('the breaker opens', async () => (await isProbing()).length, { is: 1 });
  expect(await waitingFor(database)).toHaveLength(KEYS.length);
  receiver.behave(answer(200));
  await eventually('all arrive', async () => (await countQueued(database)) === 0, WITHIN_MS);
  expectAllInOrder(receiver.received);
}, 120_000);

test('what failed for itself keeps its time', async () => {
  const own = KEYS.slice(0, 2);
  const failsFor: Behaviour = (webhook, response) =>
    answer(own.includes(keyOf(webhook)) ? 422 : 503)(webhook, response);
  const { database, receiver, send } = await downServer(failsFor);
  receiver.behave(answer(200));
  const before = await waitingFor(database);
  await send('wamid.new', 'sent');
  const rest = own.length * LADDER.length;
  await eventually('the others arrive', async () => (await countQueued(database)) === rest, WITHIN_MS);
  const after = await waitingFor(database);
  expect(after).toHaveLength(own.length);
  expect(before).toEqual(expect.arrayContaining(after));
}, 120_000);

test('a server that is back for a moment gets each delivery once more, and none of its retries is used up', async () => {
  const { database, receiver, send } = await downServer();
  const before = await waitingFor(database);
  const onlyNew: Behaviour = (webhook, response) =>
    answer(keyOf(webhook).startsWith('wamid.new') ? 200 : 503)(webhook, response);
  receiver.behave(onlyNew);
  const downUntil = receiver.received.length;
  await send('wamid.new1', 'sent');
  const tried = () => receiver.received.slice(downUntil).filter((webhook) => KEYS.includes(keyOf(webhook)));
  await eventually('each is tried', () => tried().length === KEYS.length, WITHIN_MS);
  await eventually('and waits', async () => (await waitingFor(database)).length, { is: KEYS.length });
  for (const [n, { id, at, retriesUsed }] of (await waitingFor(database)).entries()) {
    expect({ id, retriesUsed }).toEqual({ id: before[n]?.id, retriesUsed: before[n]?.retriesUsed });
    expect(at).toBeCloseTo(before[n]?.at ?? 0, 0);
  }
  // The next success changes nothing soon, however often the server comes and goes.
  await send('wamid.new2', 'sent');
  await eventually('the next return is planned', async () => (await minutesUntilReturn(database)) !== null);
  expect(await minutesUntilReturn(database)).toBeGreaterThan(10);
  expect(tried()).toHaveLength(KEYS.length);
  // And then everything arrives.
  receiver.behave(answer(200));
  await execute(database, 'update webhook_endpoints set backlog_due_at = now()', []);
  await eventually('all arrive', async () => (await countQueued(database)) === 0, WITHIN_MS);
  expectAllInOrder(receiver.received);
}, 120_000);

test('no kill of the worker loses that something is to be brought forward', async () => {
  const { database, receiver, work, worker, send } = await downServer();
  await worker.kill();
  receiver.behave(answer(200));
  await send('wamid.new', 'sent');
  const second = await work();
  await eventually('one success', () => succeeded(receiver.received).length > 0, WITHIN_MS);
  await eventually('is recorded', async () => (await countQueued(database)) <= KEYS.length * LADDER.length);
  await second.kill();
  await work();
  await eventually('all arrive', async () => (await countQueued(database)) === 0, WITHIN_MS);
  expectAllInOrder(receiver.received);
}, 120_000);
