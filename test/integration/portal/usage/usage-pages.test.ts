import { beforeEach, expect, test } from 'vitest';
import { makeUsageFolding } from '../../../../src/features/messages/usage-days.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { bodyOf, messageStatus, textMessage } from '../../../support/load/upstream-bodies.ts';
import { takeIn } from '../../../support/take-in.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { newOffice, newUser, type Office } from '../portal-browser.ts';

const api = apiOfFile();
let store: Office;
let page: string;

beforeEach(async () => {
  store = await newOffice(api);
  page = `${store.path}/usage`;
});

const text = (body: string) => body.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
const today = new Date().toISOString().slice(0, 10);

/** Of today, whatever the times in the bodies are. */
async function count(): Promise<void> {
  const { wabaId, number: phoneNumberId } = store;
  const account = { wabaId, phoneNumberId, displayPhoneNumber: '12025550100' };
  const status = (id: string, state: string) => {
    const { json, ...item } = messageStatus(`${wabaId}.${id}`, state);
    const pricing = { billable: true, type: 'regular', category: 'marketing' };
    return { ...item, json: { ...json, timestamp: '1', pricing } };
  };
  const message = textMessage(`${wabaId}.in`, 'hello');
  const items = [status('1', 'sent'), status('1', 'delivered'), status('2', 'failed')];
  await takeIn(
    api.database,
    bodyOf(account, [...items, { ...message, json: { ...message.json, timestamp: '1' } }]),
  );
  await makeUsageFolding(api.database)(new AbortController().signal);
}

test('a month is shown with its chart, by group and as a file, to the team only', async () => {
  expect(text((await store.admin.get(page)).body)).toContain('No messages in this month');
  await count();
  await execute(
    api.database,
    `insert into usage_costs (waba_id, day, phone_number_id, category, pricing_type, country, volume, cost, currency, reported_at)
     values (:wabaId, cast(:today as date), :number, 'marketing', 'regular', 'US', 1, 0.0125, 'EUR', now())`,
    { wabaId: store.wabaId, number: store.number, today },
  );
  const { body } = await store.admin.get(`${page}?by=country`);
  expect(text(body)).toMatch(
    /Sent 1 Delivered 1 Read 0 Failed 1 Billable 1 Received 1 Charged by upstream 0\.0125 EUR/,
  );
  expect(text(body)).toContain('US 1 1 0 1 1 1 0.0125 EUR');
  expect(body).toContain(`<title>${Number(today.slice(8))} UTC: 1 delivered, 1 failed</title>`);
  const file = await store.admin.get(`${page}/csv`);
  expect(file.headers['content-type']).toBe('text/csv; charset=utf-8');
  expect(file.body.split('\r\n')).toEqual([
    'day,category,pricingType,country,phoneNumberId,sent,delivered,read,failed,billable,received,costAmount,costCurrency,costSource',
    `${today},marketing,regular,US,${store.number},1,1,0,1,1,0,0.0125,EUR,upstream`,
    `${today},,,US,${store.number},0,0,0,0,0,1,,,`,
    '',
  ]);
  for (const month of ['2026-01', '2026-13', '<b>'])
    expect((await store.admin.get(`${page}?month=${month}`)).statusCode).toBe(200);
  expect(text((await store.admin.get(`${page}?month=2026-01`)).body)).toContain('No messages in this month');
  const other = await newOffice(api);
  expect((await other.admin.get(page)).statusCode).toBe(404);
  expect((await other.admin.get(`${page}/csv`)).statusCode).toBe(404);
  expect(text((await other.admin.get(`${other.path}/usage`)).body)).toContain('No messages in this month');
});

test('operators see the month of every tenant, and as a file', async () => {
  await count();
  const { browser: operator } = await newUser(api, null);
  const { body } = await operator.get('/portal/operator/usage');
  const row = new RegExp(`href="/portal/operator/tenants/${store.tenantId}">Fixture Store</a>`);
  expect(body).toMatch(row);
  const cells = text(body.slice(body.search(row)));
  expect(cells).toMatch(/^[^>]*>? ?Fixture Store 1 1 0 1 1 1 –/);
  const file = await operator.get('/portal/operator/usage/csv');
  expect(file.headers['content-type']).toBe('text/csv; charset=utf-8');
  expect(file.body).toContain(`\r\n${today},${store.tenantId},,1,1,0,1,1,1,,,\r\n`);
  expect((await store.admin.get('/portal/operator/usage')).statusCode).toBe(403);
  expect((await store.admin.get('/portal/operator/usage/csv')).statusCode).toBe(403);
});
