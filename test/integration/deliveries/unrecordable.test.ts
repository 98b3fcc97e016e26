import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { bodyOf, messageStatus } from '../../support/load/upstream-bodies.ts';
import { openDeliveries, receivingTenant } from '../../support/receiving-tenant.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const TIMEOUT_MS = 1_000;
const MESSAGES = 60;
const STEPS = ['sent', 'delivered', 'read'];

let store: TestDatabase;

beforeAll(async () => {
  store = await createTestDatabase(20);
});

afterAll(() => store?.close());

test.each(['auto', 'always'])(
  'what cannot be recorded is not sent again with every lease (%s)',
  async (workflows) => {
    const { database, url } = store;
    const tenant = await receivingTenant(database);
    const { receiver } = tenant;
    const settings = testSettings(url, {
      HELIOGRAPH_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS),
      HELIOGRAPH_WEBHOOK_CONNECT_TIMEOUT_MS: String(TIMEOUT_MS),
      HELIOGRAPH_DELIVERY_WORKFLOWS: workflows,
    });
    await database.raw('alter table attempts add constraint stop check (false) not valid');
    const worker = await startWorker(loadConfig(settings), silentLogger);
    onTestFinished(() => worker.stop());
    for (const step of STEPS) {
      const items = Array.from({ length: MESSAGES }, (_, n) => messageStatus(`wamid.${workflows}${n}`, step));
      await insertBodies(database, [bodyOf(tenant.account, items)]);
    }
    await eventually('something was sent', () => receiver.received.length > 0);
    // Several leases of 2 s: this is what the test is about.
    await sleep(8 * TIMEOUT_MS);
    const counts = () => {
      const byId = new Map<string, number>();
      for (const { headers } of receiver.received) {
        const id = String(headers['webhook-id']);
        byId.set(id, (byId.get(id) ?? 0) + 1);
      }
      return byId;
    };
    expect(Math.max(...counts().values())).toBe(1);
    await database.raw('alter table attempts drop constraint stop');
    const open = () => openDeliveries(database, tenant);
    await eventually('everything is delivered', open, { is: 0 });
    expect(counts().size).toBe(MESSAGES * STEPS.length);
    expect(Math.max(...counts().values())).toBeLessThanOrEqual(2);
  },
);
