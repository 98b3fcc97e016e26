import { expect, onTestFinished, test } from 'vitest';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { queryValue } from '../../../src/platform/postgres/sql.ts';
import { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { holdRows } from '../../support/held-rows.ts';
import { idleLoop } from '../../support/idle-loop.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { addEndpoint, freshTenant } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';

/** With two deliveries each: more results than may be unrecorded. */
const ENDPOINTS = 600;

/** Well below the time after which a lock is given up, and after which a result is. */
const SOON_MS = 9_000;

/** A busy machine takes long to accept 1,200 connections: none may fail for that. */
const TIMEOUT_MS = 120_000;

/** A delivery loop that sends to a receiver, whose answers below /held wait for `letGo`. */
async function stormy() {
  const { database } = await testWorkerDatabase(20);
  const { wabaId } = await freshTenant(database);
  const { promise: isLetGo, resolve: letGo } = Promise.withResolvers<void>();
  const receiver = await startReceiver(async (webhook, response) => {
    if (webhook.path.startsWith('/held')) await isLetGo;
    return answer(webhook.path === '/good' ? 200 : 503)(webhook, response);
  });
  onTestFinished(() => receiver.close());
  const urls = Array.from({ length: ENDPOINTS }, (_, n) => `${receiver.url}/held/${n}`);
  const ids = await addEndpoints(database, wabaId, { urls, ratePerSecond: null });
  await queueEach(database, wabaId, [...ids, ...ids], (n) => `lane ${n}`);
  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  const sender = makeHttpSender({
    guard,
    allowHttp: true,
    connectTimeoutMs: TIMEOUT_MS,
    totalTimeoutMs: TIMEOUT_MS,
  });
  const defaults = { retryScheduleMs: [600_000], timeoutMs: TIMEOUT_MS, workflows: 'auto' as const };
  const { loop } = idleLoop({ database, sender, defaults });
  onTestFinished(async () => {
    letGo();
    await loop.drained();
    await sender.close();
  });
  const add = async (path: string) => {
    const { id } = await addEndpoint(database, wabaId, `${receiver.url}${path}`);
    await queueEach(database, wabaId, [id], () => 'lane');
    loop.wake();
    return id;
  };
  const attempts = (endpointId: string | null) =>
    queryValue<number>(
      database,
      'select count(*)::integer from attempts where endpoint_id = coalesce(cast(:endpointId as bigint), endpoint_id)',
      { endpointId },
    );
  return { database, receiver, ids, loop, letGo, add, attempts };
}

test.each([
  [
    'settings',
    2 * ENDPOINTS,
    'select 1 from webhook_endpoints where id = any (cast(:ids as bigint[])) for update',
  ],
  [
    'deliveries',
    0,
    'select 1 from delivery_queue where endpoint_id = any (cast(:ids as bigint[])) for update',
  ],
])(
  'failures of 600 endpoints whose $0 somebody holds delay neither deliveries of others nor their failures',
  async (_, recordedMeanwhile, text) => {
    const { database, receiver, ids, loop, letGo, add, attempts } = await stormy();
    loop.start();
    await eventually('all hang', () => receiver.received.length, { is: 2 * ENDPOINTS });
    const { release } = await holdRows(database, text, { ids });
    onTestFinished(release);
    letGo();
    await eventually('all are answered', () => receiver.received.every(({ status }) => status === 503));
    const bad = await add('/bad');
    await eventually('a failure of another is recorded', () => attempts(bad), { is: 1, withinMs: SOON_MS });
    const good = await add('/good');
    await eventually('a delivery to another is recorded', () => attempts(good), { is: 1, withinMs: SOON_MS });
    await eventually('all but what is held is recorded', () => attempts(null), {
      is: recordedMeanwhile + 2,
      withinMs: SOON_MS,
    });
    await release();
    await eventually('all are recorded', () => attempts(null), { is: 2 * ENDPOINTS + 2 });
    expect(receiver.received).toHaveLength(2 * ENDPOINTS + 2);
  },
);
