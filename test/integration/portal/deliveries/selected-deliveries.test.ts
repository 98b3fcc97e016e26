import { beforeEach, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { OTHER_WABA, startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { addDelivery } from '../delivery-fixtures.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

const PATH = `/portal/w/${WABA}/deliveries`;
const FAILED = { status: 503, responseBody: 'down', responseHeaders: { 'retry-after': '9' } };

let api: TestApi;
let admin: PortalBrowser;
let member: PortalBrowser;
let operator: PortalBrowser;

beforeEach(async () => {
  api = await startTestApi();
  await addEndpoint(api.database, WABA, 'https://receiver.example/hook');
  await addEndpoint(api.database, OTHER_WABA, 'https://other.example/hook');
  const tenantId = await tenantOf(api.database, WABA);
  admin = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  member = await addUser(api, { email: 'member@store.example', role: 'member', tenantId });
  operator = await addUser(api, { email: 'op@example.com', role: 'operator', tenantId: null });
});

/** Three deliveries that wait for a retry, in lanes of their own, and one that is delivered; the oldest first. */
async function waitingDeliveries(): Promise<string[]> {
  const ids: string[] = [];
  for (const name of ['one', 'two', 'three']) {
    const made = { eventId: `wamid.${name}`, state: 'pending', attempts: [FAILED], minutesAgo: 5 } as const;
    ids.push(...(await addDelivery(api.database, made)));
  }
  await addDelivery(api.database, { eventId: 'wamid.delivered' });
  await api.database.raw(
    `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 day'`,
  );
  return ids;
}

const formOf = (browser: PortalBrowser, ids: readonly string[], more: [string, string][] = []) =>
  [['_csrf', browser.token()], ...ids.map((id) => ['id', id]), ...more] as [string, string][];
const audited = async () =>
  (
    await query<{ target: string; action: string }>(
      api.database,
      `select action, target from audit_log where action like 'delivery.%' and action <> 'delivery.read' order by id`,
    )
  ).map(({ action, target }) => `${action} ${target}`);

test('selected deliveries are retried from the list, by those who may, and the list stays as it was', async () => {
  const [one = '', two = '', three = ''] = await waitingDeliveries();
  const list = await admin.get(`${PATH}?state=pending`);
  expect([...list.body.matchAll(/type="checkbox" form="selection" name="id"/g)]).toHaveLength(3);
  expect(await markupProblems(list.body)).toEqual([]);
  expect((await admin.get(PATH)).body.match(/form="selection"/g)).toHaveLength(3);
  expect((await member.get(PATH)).body).not.toContain('form="selection"');
  const retry = `${PATH}/selected/retry`;
  expect((await member.post(retry, formOf(member, [one]))).statusCode).toBe(403);
  const noToken = await admin.post(retry, [['id', one]]);
  expect(noToken.statusCode).toBe(403);
  const retried = await admin.post(`${retry}?state=pending`, formOf(admin, [two, one]));
  expect([retried.statusCode, retried.headers.location]).toEqual([303, `${PATH}?state=pending&done=retried`]);
  expect((await admin.get(retried.headers.location ?? '')).body).toContain('The next attempts are made now.');
  expect((await api.database.raw('select state from delivery_queue order by position')).rows).toEqual(
    ['due', 'due', 'retrying'].map((state) => ({ state })),
  );
  expect(await audited()).toEqual([one, two].map((id) => `delivery.retried delivery ${id}`));
  // What cannot be retried is named with the reason, and keeps none of the others.
  await api.database.raw(`update delivery_queue set state = 'queued' where state = 'due'`);
  const [foreign = ''] = await addDelivery(api.database, { eventId: 'wamid.x', wabaId: OTHER_WABA });
  const mixed = await admin.post(retry, formOf(admin, [one, three, foreign]));
  expect([mixed.statusCode, await markupProblems(mixed.body)]).toEqual([200, []]);
  expect(mixed.body).toContain('1 of 3 changed.');
  expect(mixed.body).toContain('waits behind an earlier one');
  expect(mixed.body).toContain(`There is no delivery ${foreign}.`);
  const none = await admin.post(retry, formOf(admin, []));
  expect([none.statusCode, none.body.includes('No delivery is selected')]).toEqual([422, true]);
});

test('an operator retries selected deliveries of several WABAs from the list of all, and drops none there', async () => {
  const [one = ''] = await waitingDeliveries();
  const [other = ''] = await addDelivery(api.database, { eventId: 'wamid.theirs', wabaId: OTHER_WABA });
  const all = '/portal/operator/deliveries';
  const list = await operator.get(`${all}?state=pending`);
  expect([...list.body.matchAll(/type="checkbox" form="selection" name="id"/g)]).toHaveLength(3);
  expect(list.body).not.toContain('/selected/drop');
  expect(await markupProblems(list.body)).toEqual([]);
  const retry = `${all}/selected/retry`;
  expect((await admin.post(retry, formOf(admin, [one]))).statusCode).toBe(403);
  const retried = await operator.post(`${retry}?state=pending`, formOf(operator, [one]));
  expect([retried.statusCode, retried.headers.location]).toEqual([303, `${all}?state=pending&done=retried`]);
  expect((await operator.get(retried.headers.location ?? '')).body).toContain(
    'The next attempts are made now.',
  );
  expect(await audited()).toEqual([`delivery.retried delivery ${one}`]);
  const unknown = `dlv_${'0'.repeat(12)}7${'0'.repeat(19)}`;
  const mixed = await operator.post(retry, formOf(operator, [one, other, unknown]));
  expect([mixed.statusCode, await markupProblems(mixed.body)]).toEqual([200, []]);
  expect(mixed.body).toContain(`href="/portal/w/${OTHER_WABA}/deliveries/${other}"`);
  expect(mixed.body).toContain(`There is no delivery ${unknown}.`);
  expect((await operator.post(`${all}/selected/drop`, formOf(operator, [one]))).statusCode).toBe(404);
  expect((await api.database.raw('select 1 from delivery_queue')).rows).toHaveLength(3);
});

test('selected deliveries are dropped from the list after a question', async () => {
  const [one = '', two = '', three = ''] = await waitingDeliveries();
  await admin.get(PATH);
  const drop = `${PATH}/selected/drop?eventType=message`;
  const question = await admin.post(drop, formOf(admin, [one, two]));
  expect([question.statusCode, await markupProblems(question.body)]).toEqual([200, []]);
  expect(question.body).toContain('Drop these 2 deliveries?');
  expect(await audited()).toEqual([]);
  const dropped = await admin.post(drop, formOf(admin, [one, two], [['confirm', 'yes']]));
  expect([dropped.statusCode, dropped.headers.location]).toEqual([
    303,
    `${PATH}?eventType=message&done=dropped`,
  ]);
  const left = await query(api.database, 'select delivery_id from delivery_queue');
  expect(left).toHaveLength(1);
  expect((await admin.get(`${PATH}/${one}`)).body).toContain('dropped by admin@store.example');
  expect(await audited()).toEqual([one, two].map((id) => `delivery.dropped delivery ${id}`));
  expect((await member.post(drop, formOf(member, [three], [['confirm', 'yes']]))).statusCode).toBe(403);
});
