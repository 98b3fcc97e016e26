import { expect, test } from 'vitest';
import { KnownCustomers } from '../../../src/ingest/intake/known-customers.ts';
import type { StatusItem } from '../../../src/ingest/split/status-items.ts';
import type { Owned } from '../../../src/ingest/split/upstream-items.ts';
import { statusOf } from './support/upstream-body.ts';

const WABA = '900000000000101';
const STATUS = statusOf(
  '{"id":"wamid.X","status":"sent","timestamp":"1790000000","recipient_id":"12025550143"}',
);
const NOBODY = { person: null };

function knowing(): KnownCustomers {
  const customers = new KnownCustomers();
  customers.addSubscribers(WABA, []);
  return customers;
}

/** A status of a message to the customer of this number. */
function itemOf(n: number): Owned<StatusItem> {
  const recipient = { userId: null, waId: String(491_700_000_000 + n), otherPhone: null };
  return { wabaId: WABA, tenantId: '1', item: { ...STATUS, recipient } };
}

test('60,000 customers are remembered all, so that none of their messages waits for a look at the database', () => {
  const customers = knowing();
  const items = Array.from({ length: 60_000 }, (_, n) => itemOf(n));
  for (const item of items) customers.add(item, NOBODY);
  expect(items.filter((item) => customers.find(item) === null)).toEqual([]);
});

test('beyond what is remembered, the customers who were seen longest ago are forgotten, one for one', () => {
  const customers = knowing();
  const most = 65_536;
  for (let n = 0; n < most; n += 1) customers.add(itemOf(n), NOBODY);
  expect(customers.find(itemOf(0))).not.toBeNull();
  customers.add(itemOf(most), NOBODY);
  expect([0, 1, 2, most].map((n) => customers.find(itemOf(n)) !== null)).toEqual([true, false, true, true]);
});
