import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import {
  bringIn,
  type Customer,
  type Event,
  follow,
  type Known,
  note,
  platformApi,
  replaceKey,
  suspend,
} from '../../../examples/provisioning/provision.ts';
import { query, queryValue } from '../../../src/platform/postgres/sql.ts';
import { startApiProcess } from '../../support/application-process.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';
import { apiOfFile } from '../api/api-harness.ts';
import { addPlatformKey } from '../api/provisioning/platform-client.ts';

const api = apiOfFile();

const customersOf = (product: string, wabas: string): readonly Customer[] =>
  Array.from({ length: 200 }, (_, n) => ({
    id: `${product}-${n}`,
    name: `Customer ${n}`,
    wabaId: `${wabas}${String(n).padStart(5, '0')}`,
  }));

const CUSTOMERS = customersOf('customer', '9500000000');

const AT_ONCE = 8;

/** As a program that works through its list, some at a time. */
async function each<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = items.entries();
  const worker = async () => {
    for (const [index, item] of rest) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

/** What the tables have of the customers. */
async function stored(product = 'customer'): Promise<Map<string, Known>> {
  const rows = await query<{ id: string; isSuspended: boolean; wabas: string[]; keyIds: string[] }>(
    api.database,
    `select t.external_id as id, t.suspended_at is not null as "isSuspended",
            array(select waba_id from wabas w where w.tenant_id = t.id) as wabas,
            array(select k.id::text from api_keys k join wabas w using (waba_id)
                   where w.tenant_id = t.id and k.revoked_at is null) as "keyIds"
       from tenants t where starts_with(t.external_id, :product)`,
    { product },
  );
  return new Map(
    rows.map(({ id, isSuspended, wabas, keyIds }) => [
      id,
      { state: isSuspended ? 'suspended' : 'active', wabas: new Set(wabas), keyIds: new Set(keyIds) },
    ]),
  );
}

test('a product brings in 200 customers twice side by side, replaces keys and suspends two: nothing twice, and the feed gives the state', async () => {
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = api.app.server.address() as AddressInfo;
  const { platformKey } = await addPlatformKey(api.database);
  const ask = platformApi(`http://127.0.0.1:${port}`, platformKey);
  const known = new Map<string, Known>();
  const bring = () => each(CUSTOMERS, (customer) => bringIn(ask, customer));
  const [one, other] = await Promise.all([bring(), bring()]);
  for (const [n, key] of one.entries()) {
    const made = [key, other[n]].filter((apiKey) => apiKey !== null);
    expect([n, made]).toEqual([n, [expect.stringMatching(/^ck_[0-9a-f]{64}$/)]]);
  }
  const cursor = await follow(ask, known, null);
  expect(known).toEqual(await stored());
  const rotated = CUSTOMERS.slice(0, 50);
  const keys = await each(rotated, (customer) => replaceKey(ask, customer));
  expect(new Set([...keys, ...one, ...other].filter((key) => key !== null)).size).toBe(250);
  const late = CUSTOMERS.slice(-2);
  for (const customer of late) await suspend(ask, customer, 'The invoice is due.');
  expect(await bring()).toEqual(CUSTOMERS.map(() => null));
  await follow(ask, known, cursor);
  expect(known).toEqual(await stored());
  expect([...known].flatMap(([id, { state }]) => (state === 'suspended' ? [id] : []))).toEqual(
    late.map(({ id }) => id),
  );
  const again = new Map<string, Known>();
  await follow(ask, again, null);
  expect(again).toEqual(known);
  expect(again.size).toBe(CUSTOMERS.length);
});

const ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 1).toString('base64')}`;

/** A program of the product that goes through all customers, and prints each key that it was given. */
const PROGRAM = `
  const { bringIn, platformApi } = await import(process.env.EXAMPLE);
  const ask = platformApi(process.env.URL, process.env.PLATFORM_KEY);
  const rest = JSON.parse(process.env.CUSTOMERS).values();
  const worker = async () => {
    for (const customer of rest) {
      const key = await bringIn(ask, customer);
      if (key !== null) console.log(customer.id + ' ' + key);
    }
  };
  await Promise.all(Array.from({ length: ${AT_ONCE} }, worker));
`;

test('the same while API, workers and programs are killed: nothing twice, nothing lost, and feed and hook give the state', async () => {
  const customers = customersOf('shop', '9600000000');
  const settings = testSettings(api.databaseUrl, {
    HELIOGRAPH_TEMPORAL_ADDRESS: '127.0.0.1:9',
    HELIOGRAPH_ENCRYPTION_KEYS: ENCRYPTION_KEYS,
    HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '1000',
  });
  const { platformKey } = await addPlatformKey(api.database);
  let server = await startApiProcess(settings);
  let worker = startWorkerProcess(settings);
  onTestFinished(async () => void (await Promise.all([server.kill(), worker.kill()])));
  const { url } = server;
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const ask = platformApi(url, platformKey);
  await ask('PUT', '/operations-hooks/shop', { url: `${receiver.url}/hook` });
  const known = new Map<string, Known>();
  let cursor: string | null = null;
  const printed: string[] = [];
  const startProgram = async () => {
    const { platformKey: ownKey } = await addPlatformKey(api.database);
    const example = new URL('../../../examples/provisioning/provision.ts', import.meta.url).href;
    const env = { EXAMPLE: example, URL: url, PLATFORM_KEY: ownKey, CUSTOMERS: JSON.stringify(customers) };
    const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.on('data', (chunk) => printed.push(String(chunk)));
    onTestFinished(() => void child.kill('SIGKILL'));
    return { child, ended: once(child, 'exit') as Promise<[number | null, string | null]> };
  };
  const tenants = async () =>
    Number(
      await queryValue(api.database, `select count(*) from tenants where starts_with(external_id, 'shop')`),
    );
  let programs = [await startProgram(), await startProgram()];
  for (const most of [30, 90, 150]) {
    await eventually(`${most} tenants`, async () => (await tenants()) >= most);
    const [dying, other] = programs;
    dying?.child.kill('SIGKILL');
    await Promise.all([server.kill(), worker.kill(), dying?.ended]);
    server = await startApiProcess(settings, new URL(url).port);
    worker = startWorkerProcess(settings);
    // As a program that is started again: it has nothing but its list.
    programs = [...(other ? [other] : []), await startProgram()];
    cursor = await follow(ask, known, cursor);
  }
  for (const { ended } of programs) expect(await ended).toEqual([0, null]);

  const keys = printed
    .join('')
    .trim()
    .split('\n')
    .map((line) => line.split(' '));
  const ids = keys.map(([id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  // The key was in an answer that did not come: it is replaced.
  const lost = customers.filter(({ id }) => !ids.includes(id));
  for (const customer of [...lost, ...customers.slice(0, 20)]) await replaceKey(ask, customer);
  for (const customer of customers.slice(-2)) await suspend(ask, customer, 'The invoice is due.');

  const state = await stored('shop');
  expect(state.size).toBe(customers.length);
  for (const { wabas } of state.values()) expect(wabas.size).toBe(1);
  await follow(ask, known, cursor);
  expect(ofShop(known)).toEqual(state);
  await eventually('the hook has all', () => ofShop(fromHook(receiver.received)), { is: state });
});

/** Without the tenants of another test. */
const ofShop = (known: Map<string, Known>) => new Map([...known].filter(([id]) => id.startsWith('shop')));

/** What a program knows that keeps the last sequence of each tenant, and ignores what came before. */
function fromHook(received: readonly { body: string }[]): Map<string, Known> {
  const known = new Map<string, Known>();
  const last = new Map<string, number>();
  for (const { body } of received) {
    const event = JSON.parse(body) as Event;
    const id = event.tenant?.externalId ?? '';
    if (event.sequence <= (last.get(id) ?? 0)) continue;
    last.set(id, event.sequence);
    note(known, event);
  }
  return known;
}
