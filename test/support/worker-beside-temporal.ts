import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/platform/config/config.ts';
import { startWorker } from '../../src/worker/start-worker.ts';
import { ACCOUNT } from './load/upstream-bodies.ts';
import { makeOwnTemporal } from './own-temporal.ts';
import { silentLogger } from './silent-logger.ts';
import { addEndpoint } from './test-accounts.ts';
import { seededDatabase } from './test-database.ts';
import { testSettings } from './test-settings.ts';
import { startReceiver } from './webhook-receiver.ts';

/** A worker in this process, with one endpoint and a Temporal that the test may freeze or end. */
export async function workerBesideTemporal() {
  const temporal = await makeOwnTemporal();
  await temporal.start();
  const { database, url } = await seededDatabase(20);
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const endpoint = await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  const config = loadConfig(testSettings(url, { HELIOGRAPH_TEMPORAL_ADDRESS: temporal.address }));
  const worker = await startWorker(config, silentLogger);
  onTestFinished(() => worker.stop());
  return { temporal, database, receiver, endpoint };
}
