import type { Client } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { holdEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { makeOwnTemporal } from '../../support/own-temporal.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';

/** The ids and states of all runs of endpoints in trouble. */
async function runsOf(client: Client): Promise<string[]> {
  const runs: string[] = [];
  for await (const run of client.workflow.list({ query: 'WorkflowType = "endpointTrouble"' }))
    runs.push(`${run.workflowId} ${run.status.name}`);
  return runs.toSorted();
}

test('endpoints in trouble have their runs once Temporal is there, and again after it lost all it had', async () => {
  const temporal = await makeOwnTemporal();
  const { database, url } = await seededDatabase(20);
  const receiver = await startReceiver(answer(503));
  onTestFinished(() => receiver.close());
  const failing = await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/failing`);
  const paused = await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/paused`);
  await holdEndpoint({ database, actor: SYSTEM }, ACCOUNT.wabaId, {
    id: paused.id,
    mode: 'paused',
    reason: 'their maintenance',
  });
  const settings = {
    HELIOGRAPH_TEMPORAL_ADDRESS: temporal.address,
    HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '3600',
  };
  const starting = startWorker(loadConfig(testSettings(url, settings)), silentLogger);
  onTestFinished(async () => (await starting).stop());
  await insertBodies(database, [bodyOf(ACCOUNT, [textMessage('wamid.AWAY', 'x')])]);
  const failed = `select 1 from delivery_queue where state = 'retrying' and attempts = 1`;
  await eventually('failed without Temporal', async () => (await query(database, failed)).length, { is: 1 });

  const expected = [`endpoint/${failing.id} RUNNING`, `endpoint/${paused.id} RUNNING`].toSorted();
  const appear = async (when: string) => {
    const client = await temporal.connect();
    await eventually(
      `both runs ${when}`,
      async () => String(await runsOf(client).catch(() => [])) === String(expected),
    );
  };
  await temporal.start();
  await appear('once Temporal is there');
  await temporal.loseData();
  await temporal.start();
  await appear('after it lost them');
  expect(receiver.received).toHaveLength(1);
});
