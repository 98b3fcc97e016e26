import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { idleLoop } from '../../support/idle-loop.ts';
import { ACCOUNT, bodyOf, messageStatus } from '../../support/load/upstream-bodies.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { drainInbox, intakeTools } from '../../support/take-in.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { eventually, startReceiver } from '../../support/webhook-receiver.ts';

const urls = (count: number, base = 'https://e.example') =>
  Array.from({ length: count }, (_, n) => `${base}/${n}`);

test('of hundreds of deliveries that become due together, a few are begun before other requests have their turn', async () => {
  const { database } = await seededWorkerDatabase();
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const ids = await addEndpoints(database, ACCOUNT.wabaId, {
    urls: urls(40, receiver.url),
    ratePerSecond: null,
  });
  const due = Array.from({ length: 400 }, (_, n) => ids[n % ids.length] ?? '');
  await queueEach(database, ACCOUNT.wabaId, due, (n) => `lane ${n}`);

  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  const real = makeHttpSender({ guard, allowHttp: true, connectTimeoutMs: 30_000, totalTimeoutMs: 60_000 });
  onTestFinished(() => real.close());
  let begun = 0;
  const sender = {
    ...real,
    send: (...given: Parameters<typeof real.send>) => {
      begun += 1;
      return real.send(...given);
    },
  };
  const { loop } = idleLoop({ database, sender });
  let most = 0;
  let isOver = false;
  const watching = (async () => {
    for (let before = 0; !isOver; before = begun) {
      await nextTurn();
      most = Math.max(most, begun - before);
    }
  })();
  loop.start();
  await eventually('all are begun', () => begun, { is: 400, withinMs: 60_000 });
  isOver = true;
  await watching;
  await loop.drained();
  // Two claims may be begun side by side.
  expect(most).toBeLessThanOrEqual(32);
});

/** As `given`, and notes how many deliveries each statement publishes. */
function notingPublished<Given extends Database>(given: Given, published: number[]): Given {
  return {
    ...given,
    raw: (text, bindings) => {
      const ids =
        text.includes('from publish_events') && bindings !== undefined && 'deliveryId' in bindings
          ? bindings.deliveryId
          : null;
      if (Array.isArray(ids)) published.push(ids.length);
      return given.raw(text, bindings);
    },
    transaction: (work) => given.transaction((trx) => work(notingPublished(trx, published))),
  };
}

test('a body of 200 statuses for 100 endpoints is published in statements that are made in a moment', async () => {
  const { database } = await seededWorkerDatabase();
  await addEndpoints(database, ACCOUNT.wabaId, { urls: urls(100), ratePerSecond: null });
  const statuses = Array.from({ length: 200 }, (_, n) => messageStatus(`wamid.${n}`, 'delivered'));
  await insertBodies(database, [bodyOf(ACCOUNT, statuses)]);
  const published: number[] = [];
  await drainInbox(database, intakeTools(notingPublished<Database>(database, published)));
  expect(published.reduce((sum, count) => sum + count, 0)).toBe(20_000);
  expect(Math.max(...published)).toBeLessThanOrEqual(1_500);
});
