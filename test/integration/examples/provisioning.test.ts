import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import {
  bringIn,
  type Customer,
  follow,
  type Known,
  platformApi,
  replaceKey,
  suspend,
} from '../../../examples/provisioning/provision.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { apiOfFile } from '../api/api-harness.ts';
import { addPlatformKey } from '../api/provisioning/platform-client.ts';

const api = apiOfFile();

const CUSTOMERS: readonly Customer[] = Array.from({ length: 200 }, (_, n) => ({
  id: `customer-${n}`,
  name: `Customer ${n}`,
  wabaId: `9500000000${String(n).padStart(5, '0')}`,
}));

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
async function stored(): Promise<Map<string, Known>> {
  const rows = await query<{ id: string; isSuspended: boolean; wabas: string[]; keyIds: string[] }>(
    api.database,
    `select t.external_id as id, t.suspended_at is not null as "isSuspended",
            array(select waba_id from wabas w where w.tenant_id = t.id) as wabas,
            array(select k.id::text from api_keys k join wabas w using (waba_id)
                   where w.tenant_id = t.id and k.revoked_at is null) as "keyIds"
       from tenants t where t.external_id is not null`,
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
