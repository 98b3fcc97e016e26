import type { Client } from '@temporalio/client';
import type { SearchAttributePair } from '@temporalio/common';
import { expect, onTestFinished, test } from 'vitest';
import { storeMediaTask } from '../../../../src/features/messages/media/media.ts';
import { sendMessageTask } from '../../../../src/features/messages/send/send-task.ts';
import { listenToDatabase } from '../../../../src/platform/postgres/connection.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query, queryOnly } from '../../../../src/platform/postgres/sql.ts';
import { startWorkflowStarter } from '../../../../src/platform/temporal/workflow-starter.ts';
import {
  HAS_TASK,
  insertWorkflowTasks,
  takeDueTasks,
} from '../../../../src/platform/temporal/workflow-tasks.ts';
import { makeWorkWatch } from '../../../../src/platform/work-watch.ts';
import { TASK_KINDS } from '../../../../src/worker/task-kinds.ts';
import { buffersTouched } from '../../../support/buffers-touched.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { testEventIdHash } from '../../../support/test-accounts.ts';
import { seededDatabase, testDatabase } from '../../../support/test-database.ts';
import { eventually } from '../../../support/webhook-receiver.ts';

const WABA = '900000000000101';

test('workflows of tasks are found by tenant, WABA, event and its type', async () => {
  const { database } = await seededDatabase();
  const eventIdHash = testEventIdHash(database);
  const task = storeMediaTask({ wabaId: WABA, messageId: '1', eventId: 'wamid.1_media' });
  await database.transaction((trx) => insertWorkflowTasks(trx, [task]));
  const found: Record<string, unknown>[] = [];
  const start = async (_: string, options: { typedSearchAttributes: SearchAttributePair[] }) => {
    const pairs = options.typedSearchAttributes;
    found.push(Object.fromEntries(pairs.map(({ key, value }) => [key.name, value])));
  };
  const client = { workflow: { start } } as unknown as Client;
  const loop = startWorkflowStarter({
    database,
    client,
    taskQueue: 'q',
    logger: silentLogger,
    eventIdHash,
    kinds: TASK_KINDS,
  });
  onTestFinished(loop.stop);
  await eventually('started', () => found.length, { is: 1 });
  const [tenant] = await query<{ id: string }>(
    database,
    'select tenant_id as id from wabas where waba_id = :waba',
    { waba: WABA },
  );
  expect(found).toEqual([
    {
      HeliographTenantId: tenant?.id,
      HeliographWabaId: WABA,
      HeliographEventId: await eventIdHash('wamid.1_media'),
      HeliographEventType: 'media.ready',
    },
  ]);
});

test('what is scheduled is given to Temporal at once, by its notification, while the starter rests', async () => {
  const { database, url } = await seededDatabase();
  const delays: unknown[] = [];
  const start = async (_: string, { startDelay }: { startDelay?: number }) => void delays.push(startDelay);
  const workWatch = makeWorkWatch();
  const logger = silentLogger;
  const starter = startWorkflowStarter({
    database,
    client: { workflow: { start } } as unknown as Client,
    taskQueue: 'q',
    logger,
    eventIdHash: testEventIdHash(database),
    kinds: TASK_KINDS,
    workWatch,
  });
  onTestFinished(starter.stop);
  const handlers = { heliograph_workflow_tasks: () => starter.wake() };
  const listener = listenToDatabase({ url, applicationName: 'test', handlers, logger });
  onTestFinished(listener.close);
  listener.open();
  await eventually('it listens', () => listener.downMs(), { is: 0 });
  // Its one look finds nothing.
  await workWatch.start({ database, logger, standsAside: () => true }).stop();
  const sendAt = new Date(Date.now() + 3_600_000);
  await database.transaction((trx) => insertWorkflowTasks(trx, [sendMessageTask(WABA, '4711', sendAt)]));
  await eventually('Temporal has it', () => delays.length, { is: 1 });
  expect(delays[0]).toBeLessThanOrEqual(3_600_000);
});

test('a task is seen before it is due, and found among 100,000 that are not', async () => {
  const { database } = await testDatabase();
  await execute(
    database,
    `insert into workflow_tasks (workflow_id, workflow_type, waba_id, event_id, argument, next_start_at, starts_at, give_at)
     select 'send/' || n, 'sendMessage', :waba, n, '{}', at, at, case when n % 2 = 0 then at end
       from generate_series(1, 100000) as n, lateral (select now() + interval '1 hour' + n * interval '1 second' as at) as times`,
    { waba: WABA },
  );
  await database.raw('vacuum analyze workflow_tasks');
  const hasTask = async () =>
    (await queryOnly<{ found: boolean }>(database, `select (${HAS_TASK}) as found`)).found;
  const dueIn = async (seconds: number) =>
    await execute(
      database,
      `update workflow_tasks set next_start_at = now() + :seconds * interval '1 second' where workflow_id = 'send/1'`,
      { seconds },
    );
  expect(await hasTask()).toBe(false);
  // The watch looks once a second.
  await dueIn(1.5);
  expect(await hasTask()).toBe(true);
  await dueIn(0);
  const look = async (explaining: Database) =>
    expect(await takeDueTasks(explaining, TASK_KINDS, 50)).toMatchObject([{ workflowId: 'send/1' }]);
  expect(await buffersTouched(database, look)).toBeLessThan(50);
});
