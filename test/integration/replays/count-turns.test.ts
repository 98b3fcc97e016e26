import { setTimeout as sleep } from 'node:timers/promises';
import type { LightMyRequestResponse } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { saveWaba } from '../../../src/features/accounts/accounts.ts';
import { countInTurn } from '../../../src/features/replays/count-turn.ts';
import { openDatabase } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { addKey, OTHER_WABA, startTestApi, type TestApi, WABA } from '../api/api-harness.ts';
import { addDelivery } from '../portal/delivery-fixtures.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal/portal-browser.ts';

/** WABAs of the tenant that counts. */
const WABAS = [WABA, '900000000000103', '900000000000104'];

const COUNT = { eventTypes: ['message'], states: ['failed'] };

/** An API with the connections of the product, whose tenant has three WABAs with a key each; its counts wait for `release`. */
async function startWithEndlessCounts() {
  const poolMax = 10;
  const api = await startTestApi(async (url) => {
    const database = openDatabase({ url, poolMax, applicationName: 'counts' });
    onTestFinished(() => database.destroy());
    return { database };
  });
  const { database } = api;
  const tenantId = await tenantOf(database, WABA);
  for (const wabaId of WABAS.slice(1))
    await saveWaba(database, tenantId, { wabaId, accessTokenSealed: null });
  const keys = await Promise.all(WABAS.map(async (wabaId) => (await addKey(database, wabaId)).authorization));
  const release = await holdTable(api.databaseUrl, 'deliveries');
  onTestFinished(release);
  return { ...api, tenantId, keys, release };
}

/** Connections on which a count is under way. */
async function countsUnderWay({ database }: Pick<TestApi, 'database'>): Promise<number> {
  const [row] = await query<{ counts: number }>(
    database,
    `select cast(count(*) as integer) as counts from pg_stat_activity
      where datname = current_database() and application_name = 'counts' and wait_event_type = 'Lock'`,
  );
  return row?.counts ?? 0;
}

async function countBy(api: TestApi, authorization: string): Promise<LightMyRequestResponse> {
  const payload = { ...COUNT, dryRun: true };
  return await api.app.inject({
    method: 'POST',
    url: '/api/external/replays',
    headers: { authorization },
    payload,
  });
}

test('a tenant that counts with three keys has one connection for it, the next are told when, and nobody waits behind them', async () => {
  const api = await startWithEndlessCounts();
  const { authorization } = await addKey(api.database, OTHER_WABA);
  const first = api.keys.map((key) => countBy(api, key));
  let isOver = false;
  onTestFinished(() => {
    isOver = true;
  });
  const answers: LightMyRequestResponse[] = [];
  const loops = api.keys.map(async (key, n) => {
    for (let next = first[n]; next !== undefined; next = isOver ? undefined : countBy(api, key)) {
      answers.push(await next);
    }
  });
  await expect.poll(() => countsUnderWay(api)).toBeGreaterThan(0);
  const most: number[] = [];
  for (let n = 0; n < 20; n += 1) {
    const read = await api.app.inject({ url: '/api/external/conversations', headers: { authorization } });
    expect(read.statusCode).toBe(200);
    most.push(await countsUnderWay(api));
  }
  expect(Math.max(...most)).toBeLessThanOrEqual(1);
  await expect.poll(() => answers.some(({ statusCode }) => statusCode === 422)).toBe(true);
  isOver = true;
  await Promise.all(loops);
  const told = answers.map(({ statusCode, headers, json }) => [
    statusCode,
    json().error.code,
    headers['retry-after'],
  ]);
  expect(new Set(told.map(String))).toEqual(new Set(['422,replay_too_large,', '429,rate_limit_exceeded,3']));
  await api.release();
  expect((await countBy(api, api.keys[0] ?? '')).json()).toMatchObject({ dryRun: true, deliveries: 0 });
});

test('a count that takes too long in the portal says to narrow the selection', async () => {
  const api = await startWithEndlessCounts();
  const { tenantId } = api;
  const admin: PortalBrowser = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  await admin.get(`/portal/w/${WABA}/replays/new`);
  const post = () => admin.post(`/portal/w/${WABA}/replays/new`, { by: 'filter', states: 'failed' });
  const slow = await post();
  expect([slow.statusCode, slow.body.includes('narrow the selection')]).toEqual([422, true]);
  // As while another process counts for the tenant.
  await countInTurn(api.database, { tenantId, timeoutMs: null }, async () => {
    const second = await post();
    expect([second.statusCode, second.body.includes('being counted')]).toEqual([429, true]);
  });
});

test('the statements of one count share its three seconds', async () => {
  const { authorization, api, hold } = await startWithTwoLocks();
  const releaseEvents = await hold('events');
  const releaseRest = await hold('webhook_endpoints');
  onTestFinished(releaseRest);
  // The first statement waits for events, the second for endpoints.
  const counted = api.app.inject({
    method: 'POST',
    url: '/api/external/replays',
    headers: { authorization },
    payload: { eventTypes: ['message'], dryRun: true },
  });
  await waitedFor(api, 'events', 2);
  await releaseEvents();
  // With three seconds of its own, the second would get its lock.
  void waitedFor(api, 'webhook_endpoints', 2).then(releaseRest, () => undefined);
  const { statusCode, body } = await counted;
  expect([statusCode, body.includes('within 3 seconds')]).toEqual([422, true]);
});

test('a replay whose count takes too long is refused before the request is given up, and does not start', async () => {
  const { authorization, api, hold } = await startWithTwoLocks();
  const release = await hold('events');
  onTestFinished(release);
  const { statusCode, body } = await api.app.inject({
    method: 'POST',
    url: '/api/external/replays',
    headers: { authorization },
    payload: { eventTypes: ['message'] },
  });
  expect([statusCode, body.includes('within 10 seconds')]).toEqual([422, true]);
  await release();
  expect(await query(api.database, 'select id from replays')).toEqual([]);
});

async function startWithTwoLocks() {
  const api = await startTestApi();
  const { authorization } = await addKey(api.database, WABA);
  await addEndpoint(api.database, WABA, 'https://shop.example/hook');
  await addDelivery(api.database, { eventId: 'wamid.one', state: 'failed', attempts: [] });
  return { api, authorization, hold: (table: string) => holdTable(api.databaseUrl, table) };
}

/** Locks a table, which the counts wait for, until what it returns is called. */
async function holdTable(url: string, table: string): Promise<() => Promise<void>> {
  const locks = openDatabase({ url, poolMax: 1, applicationName: 'locks' });
  onTestFinished(() => locks.destroy());
  const locked = Promise.withResolvers<void>();
  let isOver = false;
  const held = locks.transaction(async (trx) => {
    await trx.raw(`lock table ${table} in access exclusive mode`);
    locked.resolve();
    // Idle transactions are ended after some seconds.
    while (!isOver) {
      await trx.raw('select 1');
      await sleep(100);
    }
  });
  await Promise.race([locked.promise, held]);
  return async () => {
    isOver = true;
    await held;
  };
}

/** Until a statement has waited so long for a table, by the clock of the database. */
async function waitedFor({ databaseUrl }: TestApi, table: string, seconds: number): Promise<void> {
  const looks = openDatabase({ url: databaseUrl, poolMax: 1, applicationName: 'looks' });
  onTestFinished(() => looks.destroy());
  const waits = `select 1 from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where not l.granted and l.relation = cast(cast(:table as regclass) as oid)
      and clock_timestamp() - a.query_start > :seconds * interval '1 second'`;
  await eventually(
    'a statement waits',
    async () => (await query(looks, waits, { table, seconds })).length > 0,
  );
}
