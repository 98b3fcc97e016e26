import { expect, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { apiOfFile } from '../api-harness.ts';
import { addPlatformKey, errorOf, platformClient, tenantOf } from './platform-client.ts';

const api = apiOfFile();

type Cell = { wabaId: string; day?: string; category?: string; delivered?: number; billable?: number };

async function count({
  wabaId,
  day = '2026-10-05',
  category = 'marketing',
  delivered = 0,
  billable = 0,
}: Cell) {
  await execute(
    api.database,
    `insert into usage_days (waba_id, day, phone_number_id, category, pricing_type, country, sent, delivered, read, failed, billable, received)
     values (:wabaId, cast(:day as date), '1', :category, 'regular', 'DE', 0, :delivered, 0, 0, :billable, 0)`,
    { wabaId, day, category, delivered, billable },
  );
}

async function charge(wabaId: string, currency: string) {
  await execute(
    api.database,
    `insert into usage_costs (waba_id, day, phone_number_id, category, pricing_type, country, volume, cost, currency, reported_at)
     values (:wabaId, '2026-10-05', '1', 'marketing', 'regular', 'DE', 1, 0.5, :currency, now())`,
    { wabaId, currency },
  );
}

const OCTOBER = 'from=2026-10-01&to=2026-10-31';

test('counts are of all tenants, of each, or of one, and stand in a file as well', async () => {
  const ask = await platformClient(api);
  const [one, other] = [await tenantOf(ask), await tenantOf(ask)];
  const userIds = [one, other].map(async ({ name }) => (await ask('GET', `/tenants/${name}`)).body.userId);
  const [oneId, otherId] = await Promise.all(userIds);
  await count({ wabaId: one.wabaId, delivered: 5, billable: 4 });
  await count({ wabaId: one.wabaId, day: '2026-10-06', category: 'utility', delivered: 1 });
  await count({ wabaId: other.wabaId, delivered: 7 });
  await count({ wabaId: other.wabaId, day: '2026-11-01', delivered: 100 });
  await charge(one.wabaId, 'EUR');
  await charge(other.wabaId, 'USD');
  const usage = async (query: string) => {
    const { status, body } = await ask('GET', `/usage/messages?${OCTOBER}&${query}`);
    expect([query, status]).toEqual([query, 200]);
    return body.rows;
  };
  const cost = { amount: '0.5', volume: 1, source: 'upstream' };
  expect(await usage('groupBy=tenant&granularity=month')).toMatchObject([
    {
      day: '2026-10-01',
      userId: oneId,
      externalId: one.name,
      delivered: 6,
      billable: 4,
      cost: { ...cost, currency: 'EUR' },
    },
    { userId: otherId, externalId: other.name, delivered: 7, cost: { ...cost, currency: 'USD' } },
  ]);
  const [whole, ...more] = await usage('granularity=month');
  expect(more).toEqual([]);
  expect(whole).toMatchObject({ delivered: 13, cost: null });
  expect(whole).not.toHaveProperty('userId');
  expect(await usage(`tenant=${other.name}&groupBy=category`)).toMatchObject([
    { day: '2026-10-05', category: 'marketing', delivered: 7 },
  ]);
  const { authorization } = await addPlatformKey(api.database, { scopes: ['usage'] });
  const file = await api.app.inject({
    url: `/api/platform/usage/messages.csv?${OCTOBER}&groupBy=category,tenant`,
    headers: { authorization },
  });
  expect(file.headers['content-type']).toBe('text/csv; charset=utf-8');
  expect(file.body.split('\r\n')).toEqual([
    'day,userId,externalId,category,sent,delivered,read,failed,billable,received,costAmount,costCurrency,costSource',
    `2026-10-05,${oneId},${one.name},marketing,0,5,0,0,4,0,0.5,EUR,upstream`,
    `2026-10-05,${otherId},${other.name},marketing,0,7,0,0,0,0,0.5,USD,upstream`,
    `2026-10-06,${oneId},${one.name},utility,0,1,0,0,0,0,,,`,
    '',
  ]);
  expect(errorOf(await ask('GET', '/usage/messages?groupBy=tenants'))[0]).toBe(400);
  expect(errorOf(await ask('GET', '/usage/messages?tenant=nobody'))).toEqual([404, 'unknown_tenant', null]);
});

test('an alert on a count is set once for each metric and period, shown with the tenant, and removed', async () => {
  const ask = await platformClient(api);
  const { name } = await tenantOf(ask);
  const path = `/tenants/${name}/usage-alerts`;
  const monthly = { metric: 'billable', period: 'month', threshold: 10_000 };
  const daily = { metric: 'received', period: 'day', threshold: 1 };
  await ask('PUT', path, { ...monthly, threshold: 1 });
  await ask('PUT', path, daily);
  const set = await ask('PUT', path, monthly);
  expect(set).toMatchObject({ status: 200, body: { usageAlerts: [daily, monthly] } });
  expect((await ask('GET', `/tenants/${name}`)).body.usageAlerts).toEqual([daily, monthly]);
  expect((await ask('PUT', path, { ...daily, threshold: null })).body).toEqual({ usageAlerts: [monthly] });
  expect((await ask('PUT', path, { ...daily, threshold: null })).body).toEqual({ usageAlerts: [monthly] });
  for (const wrong of [
    { threshold: 0 },
    { threshold: 1.5 },
    { metric: 'sold' },
    { period: 'year' },
    { more: 1 },
  ])
    expect(errorOf(await ask('PUT', path, { ...monthly, ...wrong }))[0]).toBe(400);
  expect(errorOf(await ask('PUT', '/tenants/nobody/usage-alerts', monthly))).toEqual([
    404,
    'unknown_tenant',
    null,
  ]);
  const { body } = await ask('GET', `/operation-events?types=tenant.updated&tenant=${name}`);
  const [, ...changes] = body.data.map(({ data }: { data: object }) => data);
  expect(changes).toEqual([{ ...monthly, threshold: 1 }, daily, monthly, { ...daily, threshold: null }]);
});
