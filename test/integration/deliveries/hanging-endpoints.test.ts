import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { listenInTest } from '../../support/listen.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { addEndpoints } from '../../support/many-endpoints.ts';
import {
  accountOf,
  openDeliveries,
  type ReceivingTenant,
  receivingTenant,
} from '../../support/receiving-tenant.ts';
import { freshTenant } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

/** Several times what the other endpoint needs: what waits for an attempt that hangs arrives after one has ended. */
const TIMEOUT_MS = 15_000;
const WATCHED = 10;

/** Half of the time for which a transaction of the worker waits for a lock: what is recorded later has waited for one. */
const NO_LOCK_MS = 9_000;

/** Answers until told to hang. From then on it holds what it gets, each path and how many such attempts have ended. */
async function startCrowd() {
  const hanging = new Set<string>();
  let [hangs, ended] = [false, 0];
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    if (!hangs) {
      request.once('end', () => response.writeHead(204).end());
      return;
    }
    hanging.add(request.url ?? '');
    response.once('close', () => {
      ended += 1;
    });
  };
  const server = createServer(answer);
  const port = await listenInTest(server);
  return {
    url: `http://127.0.0.1:${port}`,
    hanging,
    countEnded: () => ended,
    hang: () => {
      hangs = true;
    },
  };
}

/** Has one message after the other arrive at the tenant's endpoint. */
async function expectServed(database: Database, { account, receiver }: ReceivingTenant, name: string) {
  for (let n = 0; n < WATCHED; n += 1) {
    const eventId = `wamid.${name}-${n}`;
    await insertBodies(database, [bodyOf(account, [textMessage(eventId, 'hello')])]);
    await eventually(`${eventId} arrives`, () =>
      receiver.received.some(({ headers }) => headers['x-service-event-id'] === eventId),
    );
  }
}

/** Holds the deliveries of a tenant, for which the recording of their failures waits, until `work` is done. */
async function withoutRecording(
  database: Database,
  wabaId: string,
  work: () => Promise<void>,
): Promise<void> {
  await database.transaction(async (trx) => {
    const rows = `select 1 from delivery_queue where endpoint_id in (select id from webhook_endpoints where waba_id = :wabaId) for update`;
    await query(trx, 'set local idle_in_transaction_session_timeout = 0');
    expect(await query(trx, rows, { wabaId })).not.toEqual([]);
    await work();
  });
}

test.each([6, 600])(
  '%i endpoints that begin to hang together keep another one from nothing, nor does recording that they timed out',
  async (endpoints) => {
    const { database, url } = await testDatabase();
    const [crowd, watched] = [await freshTenant(database), await receivingTenant(database)];
    const server = await startCrowd();
    const urls = Array.from({ length: endpoints }, (_, n) => `${server.url}/crowd/${n}`);
    await addEndpoints(database, crowd.wabaId, { urls, ratePerSecond: null });
    const settings = testSettings(url, { HELIOGRAPH_WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS) });
    const worker = startWorkerProcess(settings);
    onTestFinished(() => worker.stop());
    await worker.ready();
    const sendToCrowd = (id: string) =>
      insertBodies(database, [bodyOf(accountOf(crowd), [textMessage(`wamid.${id}`, 'hello')])]);
    await sendToCrowd('before');
    await expectServed(database, watched, 'before');
    await eventually('the crowd has its first', () => openDeliveries(database, crowd), { is: 0 });

    server.hang();
    await sendToCrowd('hangs');
    await eventually('each of the crowd has an attempt', () => server.hanging.size, { is: endpoints });
    await expectServed(database, watched, 'hanging');
    expect(server.countEnded(), 'attempts that hang have ended').toBe(0);

    const countTimedOut = async () => {
      const text = 'select 1 from attempts where waba_id = :wabaId and error_class is not null';
      return (await query(database, text, { wabaId: crowd.wabaId })).length;
    };
    await withoutRecording(database, crowd.wabaId, async () => {
      await eventually('they time out', () => server.countEnded() >= endpoints);
      await expectServed(database, watched, 'timed-out');
      const open = () => openDeliveries(database, watched);
      await eventually('what arrived is recorded', open, { is: 0, withinMs: NO_LOCK_MS });
      expect(await countTimedOut()).toBe(0);
    });
    await eventually('the time-outs are recorded too', async () => (await countTimedOut()) >= endpoints);
    expect(await openDeliveries(database, crowd)).toBe(endpoints);
  },
);
