import type { Client } from '@temporalio/client';
import type { SearchAttributePair } from '@temporalio/common';
import { expect, onTestFinished, test } from 'vitest';
import { storeMediaTask } from '../../../../src/features/messages/media/media.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { startWorkflowStarter } from '../../../../src/platform/temporal/workflow-starter.ts';
import { insertWorkflowTasks } from '../../../../src/platform/temporal/workflow-tasks.ts';
import { TASK_KINDS } from '../../../../src/worker/task-kinds.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { seedFixtureAccounts, testEventIdHash } from '../../../support/test-accounts.ts';
import { testDatabase } from '../../../support/test-database.ts';
import { eventually } from '../../../support/webhook-receiver.ts';

const WABA = '900000000000101';

test('workflows of tasks are found by tenant, WABA, event and its type', async () => {
  const { database } = await testDatabase();
  await seedFixtureAccounts(database);
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
