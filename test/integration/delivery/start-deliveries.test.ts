import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Database } from '../../../src/database/database.ts';
import { query } from '../../../src/database/sql.ts';
import type { DeliverySession } from '../../../src/deliveries/loop/delivery-loop.ts';
import { makeEndpointLimiter } from '../../../src/deliveries/loop/endpoint-limiter.ts';
import { leaseDelivery } from '../../../src/deliveries/queue/hand-over.ts';
import { returnUnattempted } from '../../../src/deliveries/queue/hand-over-returns.ts';
import { startDispatcher } from '../../../src/worker/dispatch/dispatcher.ts';
import { startRetryStarter } from '../../../src/worker/dispatch/retry-starter.ts';
import { makeStartAllowance } from '../../../src/worker/dispatch/start-allowance.ts';
import { startSweeper } from '../../../src/worker/dispatch/sweeper.ts';
import { bodyOf, messageStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const ACCOUNT = {
  wabaId: '900000000000101',
  phoneNumberId: '800000000000111',
  displayPhoneNumber: '12025550100',
};

/** What the loops' poll waits between two turns, less what a clock may differ. */
const LEAST_GAP_MS = 200;

type Row = { id: string; day: string; state: string; attempts: number; awaits: boolean };

async function queue(database: Database): Promise<Row[]> {
  return await query<Row>(
    database,
    `select delivery_id as id, delivery_day as day, state, attempts, awaits_workflow as awaits
       from delivery_queue order by position`,
  );
}

/** An endpoint for which `count` messages wait, each in a lane of its own. */
async function waiting(count: number): Promise<Database> {
  const { database } = await testWorkerDatabase();
  await seedFixtureAccounts(database);
  await addEndpoint(database, ACCOUNT.wabaId, 'http://127.0.0.1:9/hook');
  const items = Array.from({ length: count }, (_, n) => textMessage(`wamid.START${n}`, 'x'));
  if (count > 0) await takeIn(database, bodyOf(ACCOUNT, items));
  return database;
}

type Start = { workflowId: string; workflowIdConflictPolicy?: string };

/** Stands in for Temporal where its answer is what the test is about; what still runs has done so for `runMinutes`. */
function standIn(answer: () => 'started' | Error, runMinutes = 0) {
  const starts: (Start & { atMs: number })[] = [];
  const start = async (_type: string, { workflowId, workflowIdConflictPolicy = 'FAIL' }: Start) => {
    starts.push({ workflowId, workflowIdConflictPolicy, atMs: performance.now() });
    const given = answer();
    if (given instanceof Error && workflowIdConflictPolicy === 'FAIL') throw given;
  };
  const startTime = new Date(Date.now() - runMinutes * 60_000);
  const describe = async () => ({ taskQueue: 'nobody', startTime, raw: {} });
  const getHandle = () => ({ describe });
  return { client: { workflow: { start, getHandle } } as unknown as Client, starts };
}

const stillRuns = () => new WorkflowExecutionAlreadyStartedError('it runs', 'delivery/1', 'deliverEvent');

function loopTools(database: Database, client: Client) {
  return { database, client, logger: silentLogger, taskQueue: 'nobody', leaseMs: 30_000 };
}

function runDispatcher(database: Database, client: Client, { always = true } = {}) {
  const asked = { sessions: 0 };
  const loop = startDispatcher({
    ...loopTools(database, client),
    limiter: makeEndpointLimiter(),
    session: { isActive: () => false } as unknown as DeliverySession,
    sessionStarter: {
      start: async () => {
        asked.sessions += 1;
      },
      arrived: () => {},
    },
    allowance: always ? null : makeStartAllowance(1),
    sessionElsewhere: () => false,
  });
  onTestFinished(loop.stop);
  return asked;
}

function runSweeper(database: Database, client: Client) {
  const tools = { ...loopTools(database, client), blockLimitHours: 0, onReleased: () => {} };
  onTestFinished(startSweeper(tools).stop);
}

const gaps = (starts: readonly { atMs: number }[]) =>
  starts.slice(1).map(({ atMs }, n) => atMs - (starts[n]?.atMs ?? 0));

describe('a delivery whose earlier workflow has not ended', () => {
  test('is handed over again at the pace of the poll until its workflow can be started', async () => {
    const database = await waiting(1);
    const { client, starts } = standIn(() => (starts.length < 5 ? stillRuns() : 'started'));
    runDispatcher(database, client);
    await eventually(
      'started',
      async () => starts.length === 5 && (await queue(database))[0]?.state === 'retrying',
    );
    expect(Math.min(...gaps(starts))).toBeGreaterThan(LEAST_GAP_MS);
  });

  test('waits for its retry workflow as before, tried at the pace of the poll', async () => {
    const database = await waiting(60);
    await database.raw(`update delivery_queue set state = 'retrying', attempts = 1, awaits_workflow = true,
                               next_attempt_at = now() - interval '1 second'`);
    const { client, starts } = standIn(stillRuns);
    onTestFinished(
      startRetryStarter({ ...loopTools(database, client), retryLimits: { perEndpoint: 20, overall: 200 } })
        .stop,
    );
    await eventually('two turns', () => starts.length >= 100);
    const firstOfSecondTurn = starts[50]?.atMs ?? 0;
    expect(firstOfSecondTurn - (starts[49]?.atMs ?? 0)).toBeGreaterThan(LEAST_GAP_MS);
    await eventually('given back', async () => (await queue(database)).every(({ awaits }) => awaits));
  });

  test('stays with that workflow when the sweeper finds it overdue', async () => {
    const database = await waiting(1);
    await database.raw(
      `update delivery_queue set state = 'retrying', next_attempt_at = now() - interval '1 hour'`,
    );
    const { client, starts } = standIn(stillRuns);
    runSweeper(database, client);
    await eventually('asked', () => starts.length > 0);
    await eventually(
      'noted',
      async () =>
        (await query(database, 'select 1 from deliveries where workflow_id is not null')).length === 1,
    );
    expect((await queue(database))[0]?.state).toBe('retrying');
  });

  test('is given a new one when it is overdue by more than ten minutes and that one is as old', async () => {
    const database = await waiting(1);
    const overdueFor = (minutes: number) =>
      database.raw(
        `update delivery_queue set state = 'retrying', swept_at = null,
                next_attempt_at = now() - interval '${minutes} minutes'`,
      );
    await overdueFor(9);
    const { client, starts } = standIn(stillRuns, 11);
    runSweeper(database, client);
    await eventually('asked', () => starts.length === 1);
    await overdueFor(11);
    await eventually('replaced', () => starts.length === 3, 15_000);
    expect(starts.at(-1)?.workflowIdConflictPolicy).toBe('TERMINATE_EXISTING');
  });

  test('hides none that is lost: 250 of them are asked for in turn, each by one of two sweepers', async () => {
    const database = await waiting(251);
    await database.raw(
      `update delivery_queue set state = 'retrying', next_attempt_at = now() - interval '9 minutes'`,
    );
    const { client, starts } = standIn(stillRuns);
    runSweeper(database, client);
    runSweeper(database, client);
    await eventually('all asked for', () => starts.length >= 251, 30_000);
    expect(new Set(starts.map(({ workflowId }) => workflowId)).size).toBe(251);
    expect(starts).toHaveLength(251);
  });

  test('given back, is attempted by that workflow all the same, once', async () => {
    const database = await waiting(1);
    const [{ id: deliveryId, day: deliveryDay } = { id: '', day: '' }] = await queue(database);
    const lease = { deliveryId, deliveryDay, leaseMs: 30_000 };
    await database.raw(`update delivery_queue set state = 'retrying', next_attempt_at = now()`);
    await returnUnattempted(database, [deliveryId]);
    const token = '00000000-0000-4000-8000-000000000001';
    expect((await leaseDelivery(database, { ...lease, token })).kind).toBe('claimed');
    await returnUnattempted(database, [deliveryId]);
    expect((await queue(database))[0]?.state).toBe('claimed');
    const other = '00000000-0000-4000-8000-000000000002';
    expect((await leaseDelivery(database, { ...lease, token: other })).kind).toBe('wait');
  });

  test.each([
    ['waits for its retry', `awaits_workflow = false, next_attempt_at = now() + interval '1 hour'`],
    ['waits for a retry workflow', `awaits_workflow = true, next_attempt_at = now()`],
  ])('is not given back when that attempted it meanwhile and it %s', async (_, columns) => {
    const database = await waiting(1);
    await database.raw(`update delivery_queue set state = 'retrying', attempts = 1, ${columns}`);
    const before = await queue(database);
    await returnUnattempted(
      database,
      before.map(({ id }) => id),
    );
    expect(await queue(database)).toEqual(before);
    expect(before[0]?.state).toBe('retrying');
  });
});

describe('workflows that cannot be started', () => {
  test('do not keep a session from being started, which carries deliveries without them', async () => {
    const database = await waiting(3);
    const { client } = standIn(() => new Error('no mapping defined for search attribute'));
    const asked = runDispatcher(database, client, { always: false });
    await eventually('a session is asked for', () => asked.sessions > 0);
    await eventually('given back', async () => (await queue(database)).every(({ state }) => state === 'due'));
  });
});

describe('a delivery whose event is gone', () => {
  /** Removes the events of what waits. */
  const forgetEvents = (database: Database) => database.raw('delete from events');

  test('is taken out when it is handed over, so that the next ones of its endpoint and of its lane go', async () => {
    const database = await waiting(30);
    await forgetEvents(database);
    const status = (step: string) => bodyOf(ACCOUNT, [messageStatus('wamid.LADDER', step)]);
    await takeIn(database, status('sent'));
    await forgetEvents(database);
    await takeIn(database, status('delivered'), status('read'));
    const { client, starts } = standIn(() => 'started');
    runDispatcher(database, client);
    await eventually('only the two with an event are left', async () => (await queue(database)).length === 2);
    await eventually('the next of the lane is started', () => starts.length === 1);
    const [head, behind] = await eventualStates(database, 'retrying');
    expect([head?.state, behind?.state]).toEqual(['retrying', 'queued']);
    const dropped = await query(
      database,
      `select 1 from deliveries where state = 'dropped' and finished_at is not null`,
    );
    expect(dropped).toHaveLength(31);
  });

  test('does not fill what the sweeper restarts: a lost workflow behind 200 of them is started again', async () => {
    const database = await waiting(200);
    await forgetEvents(database);
    await takeIn(database, bodyOf(ACCOUNT, [textMessage('wamid.LOST', 'x')]));
    await database.raw(`update delivery_queue set state = 'retrying',
                               next_attempt_at = now() - interval '1 hour' + position * interval '1 millisecond'`);
    const { client, starts } = standIn(() => 'started');
    runSweeper(database, client);
    await eventually('started again', () => starts.length > 0);
    expect(starts[0]?.workflowId).toContain('wamid.LOST');
    expect(await queue(database)).toHaveLength(1);
  });
});

async function eventualStates(database: Database, headState: string): Promise<Row[]> {
  await eventually(`the head is ${headState}`, async () => (await queue(database))[0]?.state === headState);
  return await queue(database);
}
