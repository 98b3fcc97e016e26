import { expect, test } from 'vitest';
import { listTenants } from '../../../src/features/accounts/accounts.ts';
import { removeNumber } from '../../../src/features/accounts/remove-number.ts';
import { addWaba } from '../../../src/features/accounts/wabas.ts';
import { removeTenant, removeWaba } from '../../../src/ops/erasures/account-removal.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, testSecretBox } from '../../support/test-accounts.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { apiClient } from '../api/api-client.ts';
import { addKey, NUMBER, OTHER_WABA, SECOND_NUMBER, startTestApi, WABA } from '../api/api-harness.ts';
import { addUser, tenantOf } from '../portal/portal-browser.ts';

async function started() {
  const api = await startTestApi();
  const { get } = await apiClient(api);
  const tools = { database: api.database, secretBox: testSecretBox, actor: OPERATOR_COMMAND };
  return { ...api, get, tools };
}

const numbersOf = (me: { phoneNumbers: { phoneNumberId: string }[] }) =>
  me.phoneNumbers.map(({ phoneNumberId }) => phoneNumberId);

test('a WABA that is removed is gone for keys, endpoints, users and upstream, and comes back to its tenant alone', async () => {
  const { app, database, get, tools } = await started();
  const tenantId = await tenantOf(database, WABA);
  const otherId = await tenantOf(database, OTHER_WABA);
  const member = await addUser({ app, database }, { email: 'a@b.example', role: 'member', tenantId });
  await addEndpoint(database, WABA, 'https://tenant.example/hook');
  await takeIn(database, fixtureBody('in_text'));
  expect((await get('/me')).statusCode).toBe(200);

  expect(await removeWaba(tools, WABA)).toMatchObject({ endpoints: 1, dropped: 1, kept: true });
  expect((await get('/me')).statusCode).toBe(401);
  expect((await member.get(`/portal/w/${WABA}`)).statusCode).toBe(404);
  expect(await query(database, 'select 1 from webhook_endpoints')).toEqual([]);
  await takeIn(database, fixtureBody('in_image_caption_url'));
  expect(await query(database, 'select 1 from events')).toHaveLength(1);
  expect(
    await query(database, `select notes->0->>'reason' as reason from inbox where state = 'quarantined'`),
  ).toEqual([{ reason: 'removed_phone_number' }]);
  const waba = { wabaId: WABA, phoneNumbers: [], accessToken: null };
  await expect(addWaba(tools, otherId, waba)).rejects.toThrow(/removed from another tenant/);
  await expect(
    addWaba(tools, otherId, { ...waba, wabaId: OTHER_WABA, phoneNumbers: [{ phoneNumberId: NUMBER }] }),
  ).rejects.toThrow(/belongs to WABA/);
  await expect(removeWaba(tools, WABA)).rejects.toMatchObject({ code: 'unknown_waba' });

  const { phoneNumbers } = await addWaba(tools, tenantId, waba);
  expect(phoneNumbers).toHaveLength(2);
  expect((await member.get(`/portal/w/${WABA}`)).statusCode).toBe(200);
  expect((await get('/me')).statusCode).toBe(401);
});

test('a WABA of which nothing was made, and its numbers, can be added to another tenant', async () => {
  const { database, tools } = await started();
  expect(await removeWaba(tools, WABA)).toMatchObject({ kept: false });
  const phoneNumbers = [{ phoneNumberId: NUMBER }];
  const saved = await addWaba(tools, await tenantOf(database, OTHER_WABA), {
    wabaId: WABA,
    phoneNumbers,
    accessToken: null,
  });
  expect(numbersOf(saved)).toEqual([NUMBER]);
});

test('a number that is removed leaves /me, cannot send, and its messages are quarantined, until it is added again', async () => {
  const { database, get, app, tools } = await started();
  const { authorization } = await addKey(database);
  await takeIn(database, fixtureBody('in_text'));
  await removeNumber(tools, WABA, NUMBER);
  expect(numbersOf((await get('/me')).json())).toEqual([SECOND_NUMBER]);
  const payload = { phoneNumberId: NUMBER, to: '12025550143', type: 'text', text: { body: 'hi' } };
  const sent = await app.inject({
    method: 'POST',
    url: '/api/external/messages',
    headers: { authorization },
    payload,
  });
  expect([sent.statusCode, sent.json().error.code]).toEqual([422, 'unknown_phone_number']);
  await takeIn(database, fixtureBody('in_image_caption_url'));
  expect(await query(database, 'select 1 from events')).toHaveLength(1);
  await expect(removeNumber(tools, WABA, NUMBER)).rejects.toMatchObject({ code: 'unknown_phone_number' });
  await addWaba(tools, await tenantOf(database, WABA), {
    wabaId: WABA,
    phoneNumbers: [{ phoneNumberId: NUMBER }],
    accessToken: null,
  });
  expect(numbersOf((await get('/me')).json())).toEqual([NUMBER, SECOND_NUMBER]);
});

test('a tenant that is removed takes its WABAs along, and its users have no way in', async () => {
  const { app, database, get, tools } = await started();
  const tenantId = await tenantOf(database, WABA);
  const admin = await addUser({ app, database }, { email: 'a@b.example', role: 'admin', tenantId });
  await takeIn(database, fixtureBody('in_text'));
  expect((await admin.get(`/portal/w/${WABA}`)).statusCode).toBe(200);
  expect(await removeTenant(tools, tenantId)).toEqual({ userId: tenantId, wabaIds: [WABA], kept: [WABA] });
  expect((await listTenants(database)).map(({ userId }) => userId)).not.toContain(tenantId);
  expect((await get('/me')).statusCode).toBe(401);
  expect((await admin.get(`/portal/w/${WABA}`)).statusCode).not.toBe(200);
  expect(
    await query(database, 'select 1 from memberships where tenant_id = :tenantId', { tenantId }),
  ).toEqual([]);
  await expect(removeTenant(tools, tenantId)).rejects.toMatchObject({ code: 'unknown_tenant' });
  const waba = { wabaId: WABA, phoneNumbers: [], accessToken: null };
  await expect(addWaba(tools, tenantId, waba)).rejects.toMatchObject({ code: 'unknown_tenant' });
});
