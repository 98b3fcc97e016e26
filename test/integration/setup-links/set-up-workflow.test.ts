import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeSetUpActivities } from '../../../src/activities/set-up-number.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { startTaskWorkers } from '../../support/task-workers.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { createTestDatabase, drawIdsApart } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { APP, refusedWith } from './played-upstream.ts';
import {
  authorizedLink,
  linkOf,
  newCustomer,
  PUBLIC_URL,
  revoke,
  type SetupStack,
  setupStack,
} from './setup-stack.ts';

let database: Database;
let client: Client;
let stack: SetupStack;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  const store = await createTestDatabase(20);
  ({ database } = store);
  await drawIdsApart(database);
  const config = loadConfig(testSettings(store.url));
  stack = setupStack(database);
  const activities = makeSetUpActivities({
    database,
    secretBox: testSecretBox,
    graph: stack.upstream.calls,
    publicUrl: PUBLIC_URL,
    upstream: { signup: APP, verifyToken: 'verify-me' },
  });
  const workers = await startTaskWorkers(config, database, { orders: activities });
  ({ client } = workers);
  closing.push(workers.stop, store.close);
});
afterAll(async () => {
  for (const close of closing) await close();
});

const statusOf = async (id: string) => {
  const found = await client.workflow
    .getHandle(`setUp/sl_${id}`)
    .describe()
    .catch(() => null);
  return found?.status.name ?? 'none';
};

/** Every payload of the history of its latest run. */
async function payloadsOf(id: string): Promise<string[]> {
  const { events } = await client.workflow.getHandle(`setUp/sl_${id}`).fetchHistory();
  const payloads = JSON.stringify(events).matchAll(/"data":"([^"]+)"/g);
  return [...payloads].map(([, data = '']) => Buffer.from(data, 'base64').toString());
}

const holds = (payloads: readonly string[], text: string) =>
  payloads.filter((one) => one.includes(text)).length > 0;

test('a set-up runs to its end as the workflow setUp/sl_…, whose history holds neither token nor PIN', async () => {
  const shop = await newCustomer(stack);
  const { id, token, accessToken, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
  await eventually('the end of the run', () => statusOf(id), { is: 'COMPLETED' });
  // The check of the WABA is the real one here.
  expect(await linkOf(stack, id)).toMatchObject({ state: 'done', attention: ['no_endpoint'] });
  const payloads = await payloadsOf(id);
  expect(holds(payloads, `sl_${id} is done.`)).toBe(true);
  const pin = shop.waba.numbers.get(shop.number)?.pin ?? '';
  expect(pin).toMatch(/^\d{6}$/);
  for (const secret of [accessToken, token, own.nonce, `"${pin}"`])
    expect(holds(payloads, secret)).toBe(false);
});

test('revoking ends a run that waits for upstream: it is cancelled, and says why', async () => {
  const shop = await newCustomer(stack);
  const away = refusedWith(null, { httpStatus: 503, transient: true, retryAfterMs: 3_600_000 });
  stack.upstream.failNext('registerNumber', away);
  const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
  await eventually('it waits', async () => (await linkOf(stack, id)).tries, { is: 1 });
  expect(await statusOf(id)).toBe('RUNNING');
  await revoke(stack, shop.tenantId, own.id);
  await eventually('the end of the run', () => statusOf(id), { is: 'CANCELLED' });
  expect(holds(await payloadsOf(id), `sl_${id} is revoked.`)).toBe(true);
  expect(shop.waba.numbers.get(shop.number)?.isRegistered).toBe(false);
});

test('a refusal ends the run as failed, with its code; the PIN of the customer begins another', async () => {
  const shop = await newCustomer(stack);
  Object.assign(shop.waba.numbers.get(shop.number) ?? {}, { pin: '424242' });
  const { id, own } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
  await eventually('the end of the run', () => statusOf(id), { is: 'FAILED' });
  expect(JSON.stringify((await client.workflow.getHandle(`setUp/sl_${id}`).fetchHistory()).events)).toContain(
    'pin_required',
  );
  await stack.setup.givePin(own, '424242');
  await eventually('the end of the run', () => statusOf(id), { is: 'COMPLETED' });
  expect((await linkOf(stack, id)).state).toBe('done');
});

test('cancelling the run in Temporal revokes the link', async () => {
  const shop = await newCustomer(stack);
  const away = refusedWith(null, { httpStatus: 503, transient: true, retryAfterMs: 3_600_000 });
  stack.upstream.failNext('registerNumber', away);
  const { id } = await authorizedLink(stack, shop.tenantId, [shop.wabaId]);
  await eventually('it waits', async () => (await linkOf(stack, id)).tries, { is: 1 });
  await client.workflow.getHandle(`setUp/sl_${id}`).cancel();
  await eventually('the end of the run', () => statusOf(id), { is: 'CANCELLED' });
  expect((await linkOf(stack, id)).state).toBe('revoked');
});
