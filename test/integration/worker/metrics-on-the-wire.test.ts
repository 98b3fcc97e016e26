import { expect, onTestFinished, test } from 'vitest';
import { findFreePorts } from '../../../dev/embedded/ports.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { ACCOUNT, bodyOf, messageStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { counted } from '../../support/metrics-text.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';
const ATTEMPTS = 'heliograph_delivery_attempts_total';

test('a running worker counts each attempt once, whether a workflow or a session made it', async () => {
  const { database, url } = await seededDatabase(20);
  const [port = 0] = await findFreePorts(1);
  const settings = testSettings(url, { HELIOGRAPH_WORKER_HEALTH_PORT: String(port) });
  const worker = await startWorker(loadConfig(settings), silentLogger);
  onTestFinished(() => worker.stop());
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  await addEndpoint(database, WABA, `${receiver.url}/hook`);
  const scrape = async () => await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const attempts = async () => counted(await scrape(), ATTEMPTS);

  receiver.behave(answer(500));
  await insertBodies(database, [bodyOf(ACCOUNT, [textMessage('wamid.METRICS-0', 'hello')])]);
  await eventually('a first attempt', () => receiver.received.length > 0);
  receiver.behave(answer(200));
  await insertBodies(
    database,
    Array.from({ length: 300 }, (_, n) => bodyOf(ACCOUNT, [messageStatus(`wamid.METRICS-${n}`, 'sent')])),
  );
  await eventually(
    'all delivered',
    async () => (await attempts())['{outcome="delivered",status="2xx"}'] === 301,
  );
  expect(await attempts()).toEqual({
    '{outcome="delivered",status="2xx"}': 301,
    '{outcome="retrying",status="5xx"}': receiver.received.length - 301,
  });
  await eventually(
    'the figures of PostgreSQL, which the worker stores when it leads',
    async () => counted(await scrape(), 'heliograph_endpoints')['{mode="open"}'],
    // They are read every 30 s, the first time perhaps before there was an endpoint.
    { is: 1 },
  );
  expect(counted(await scrape(), 'heliograph_inbox_bodies_total')).toEqual({ '{outcome="done"}': 301 });
});
