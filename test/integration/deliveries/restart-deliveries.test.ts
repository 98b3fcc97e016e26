import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startSweeper } from '../../../src/deliveries/dispatch/sweeper.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { publicDeliveryId } from '../../../src/platform/public-ids.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts, testEventIdHash } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const ACCOUNT = {
  wabaId: '900000000000101',
  phoneNumberId: '800000000000111',
  displayPhoneNumber: '12025550100',
};

type Row = { state: string; attempts: number; byWorkflow: boolean };

async function queue(database: Database): Promise<Row[]> {
  return await query<Row>(
    database,
    `select state, attempts, by_workflow as "byWorkflow" from delivery_queue order by position`,
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
  const eventIdHash = testEventIdHash(database);
  return { database, client, logger: silentLogger, taskQueue: 'nobody', leaseMs: 30_000, eventIdHash };
}

function runSweeper(database: Database, client: Client) {
  const tools = { ...loopTools(database, client), blockLimitHours: 0, onReleased: () => {} };
  onTestFinished(startSweeper(tools).stop);
}

describe('an overdue delivery whose workflow has not ended', () => {
  test('stays with that workflow', async () => {
    const database = await waiting(1);
    await database.raw(
      `update delivery_queue set state = 'retrying', by_workflow = true, next_attempt_at = now() - interval '1 hour'`,
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
        `update delivery_queue set state = 'retrying', by_workflow = true, swept_at = null,
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
      `update delivery_queue set state = 'retrying', by_workflow = true, next_attempt_at = now() - interval '9 minutes'`,
    );
    const { client, starts } = standIn(stillRuns);
    runSweeper(database, client);
    runSweeper(database, client);
    await eventually('all asked for', () => starts.length >= 251, 30_000);
    expect(new Set(starts.map(({ workflowId }) => workflowId)).size).toBe(251);
    expect(starts).toHaveLength(251);
  });
});

describe('an overdue delivery whose workflow cannot be started', () => {
  test('is left to the delivery loop, unless it was never attempted: a test event goes out by its workflow', async () => {
    const database = await waiting(2);
    await database.raw(
      `update delivery_queue set state = 'retrying', by_workflow = true, attempts = position % 2,
              next_attempt_at = now() - interval '5 minutes'`,
    );
    const { client } = standIn(() => new Error('no mapping defined for search attribute'));
    runSweeper(database, client);
    const byWorkflow = async () =>
      new Map((await queue(database)).map((row) => [row.attempts, row.byWorkflow]));
    await eventually('the one is left to the loop', async () => (await byWorkflow()).get(1) === false);
    expect((await byWorkflow()).get(0)).toBe(true);
  });
});

describe('a delivery whose event is gone', () => {
  /** Removes the events of what waits. */
  const forgetEvents = (database: Database) => database.raw('delete from events');

  test('does not fill what the sweeper restarts: a lost workflow behind 200 of them is started again', async () => {
    const database = await waiting(200);
    await forgetEvents(database);
    await takeIn(database, bodyOf(ACCOUNT, [textMessage('wamid.LOST', 'x')]));
    await database.raw(`update delivery_queue set state = 'retrying', by_workflow = true,
                               next_attempt_at = now() - interval '1 hour' + position * interval '1 millisecond'`);
    const [lost] = await query<{ id: string }>(
      database,
      `select q.delivery_id as id from delivery_queue q join events e on e.id = q.event_uuid
        where e.event_id = 'wamid.LOST'`,
    );
    const { client, starts } = standIn(() => 'started');
    runSweeper(database, client);
    await eventually('started again', () => starts.length > 0);
    expect(starts[0]?.workflowId).toContain(publicDeliveryId(lost?.id ?? ''));
    expect(await queue(database)).toHaveLength(1);
  });
});
