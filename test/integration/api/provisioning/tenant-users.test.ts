import { expect, test } from 'vitest';
import { inviteUser } from '../../../../src/features/users/invitations.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { query, queryColumn } from '../../../../src/platform/postgres/sql.ts';
import { addUser, openBrowser, PASSWORD, type PortalBrowser } from '../../portal/portal-browser.ts';
import { apiOfFile, PUBLIC_URL, startTestApi, testConfig } from '../api-harness.ts';
import { errorOf, fresh, platformClient, tenantOf } from './platform-client.ts';

const api = apiOfFile();

let people = 0;
const newAddress = () => {
  people += 1;
  return `asha${people}@store.example`;
};

async function world() {
  const ask = await platformClient(api);
  const { name, wabaId } = await tenantOf(ask);
  const users = `/tenants/${name}/users`;
  const put = async (ref: string, email: string, role = 'admin') =>
    await ask('PUT', `${users}/${ref}`, { email, role });
  const listed = async () => (await ask('GET', users)).body.data;
  const tenantId = String((await ask('GET', `/tenants/${name}`)).body.userId);
  return { ask, name, users, put, listed, tenantId, page: `/portal/w/${wabaId}/keys` };
}

/** Accepts an invitation as a person does. */
async function accept(inviteUrl: string): Promise<PortalBrowser> {
  expect(inviteUrl).toMatch(new RegExp(`^${PUBLIC_URL}/portal/invitations/`));
  const path = inviteUrl.slice(PUBLIC_URL.length);
  const browser = openBrowser(api.app);
  await browser.get(path);
  expect((await browser.post(path, { name: 'Asha', password: PASSWORD })).statusCode).toBe(303);
  return browser;
}

test('a user is invited once, gets the name by accepting, and has no session with the next request after the removal', async () => {
  const { ask, users, put, listed, page } = await world();
  const email = newAddress();
  const made = await put('u_17', email);
  expect(made).toMatchObject({
    status: 201,
    body: { userRef: 'u_17', userId: null, email, state: 'invited' },
  });
  const again = await put('u_17', email);
  expect(again).toMatchObject({ status: 200, body: { state: 'invited', inviteUrl: null } });
  const browser = await accept(made.body.inviteUrl);
  expect(await listed()).toMatchObject([
    { userRef: 'u_17', userId: expect.any(String), email, state: 'active' },
  ]);
  expect((await put('u_17', email)).body).toMatchObject({ state: 'active', inviteUrl: null });
  expect((await browser.get(page)).statusCode).toBe(200);
  const removed = await ask('DELETE', `${users}/u_17`);
  expect(removed).toMatchObject({ status: 200, body: { userRef: 'u_17', email, state: 'active' } });
  expect((await browser.get(page)).statusCode).toBe(303);
  expect(errorOf(await ask('DELETE', `${users}/u_17`))).toEqual([404, 'unknown_user', null]);
  expect(await listed()).toEqual([]);
});

test('twenty equal requests at the same time make one invitation, and one answer has its link', async () => {
  const { put, listed, tenantId } = await world();
  const email = newAddress();
  const answers = await Promise.all(Array.from({ length: 20 }, () => put('u_1', email)));
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201]);
  expect(answers.filter(({ body }) => body.inviteUrl !== null)).toHaveLength(1);
  expect(await listed()).toHaveLength(1);
  const rows = await query(api.database, 'select from invitations where tenant_id = :tenantId', { tenantId });
  expect(rows).toHaveLength(1);
});

test('another role of an invitation makes another link, and of a user ends the sessions', async () => {
  const { put, listed, page } = await world();
  const email = newAddress();
  const first = await put('u_1', email, 'member');
  const second = await put('u_1', email, 'admin');
  expect([first.status, second.status]).toEqual([201, 201]);
  const dead = await openBrowser(api.app).get(first.body.inviteUrl.slice(PUBLIC_URL.length));
  expect(dead.statusCode).toBe(404);
  const browser = await accept(second.body.inviteUrl);
  expect((await put('u_1', email, 'member')).body).toMatchObject({ role: 'member', inviteUrl: null });
  expect((await browser.get(page)).statusCode).toBe(303);
  expect(await listed()).toMatchObject([{ role: 'member' }]);
});

test('another address of an invitation makes another one, and the link before opens nothing', async () => {
  const { put, listed } = await world();
  const [one, other] = [newAddress(), newAddress()];
  const first = await put('u_1', one);
  expect((await put('u_1', other)).status).toBe(201);
  const dead = await openBrowser(api.app).get(first.body.inviteUrl.slice(PUBLIC_URL.length));
  expect(dead.statusCode).toBe(404);
  expect(await listed()).toMatchObject([{ userRef: 'u_1', email: other }]);
});

test('an invitation that is removed opens nothing', async () => {
  const { ask, users, put } = await world();
  const { body } = await put('u_1', newAddress());
  expect((await ask('DELETE', `${users}/u_1`)).body).toMatchObject({ state: 'invited', userId: null });
  const path = body.inviteUrl.slice(PUBLIC_URL.length);
  expect((await openBrowser(api.app).get(path)).statusCode).toBe(404);
});

test('a member whom the program has not named gets the name; under another name the user is refused', async () => {
  const { put, listed, tenantId } = await world();
  const email = newAddress();
  await addUser(api, { email, role: 'member', tenantId });
  expect(await listed()).toMatchObject([{ userRef: null, email }]);
  expect(await put('u_5', email, 'member')).toMatchObject({ status: 200, body: { userRef: 'u_5' } });
  expect(errorOf(await put('u_6', email))).toEqual([409, 'user_exists', 'email']);
  expect(errorOf(await put('u_5', newAddress()))).toEqual([409, 'user_differs', 'email']);
});

test('users of another tenant are none, also with the same name and address', async () => {
  const one = await world();
  const other = await world();
  const email = newAddress();
  const browser = await accept((await one.put('u_1', email)).body.inviteUrl);
  expect(errorOf(await other.ask('DELETE', `${other.users}/u_1`))).toEqual([404, 'unknown_user', null]);
  expect((await other.put('u_1', email)).status).toBe(201);
  await other.ask('DELETE', `${other.users}/u_1`);
  expect((await browser.get(one.page)).statusCode).toBe(200);
  expect(await one.listed()).toMatchObject([{ userRef: 'u_1', state: 'active' }]);
});

test('of a suspended tenant no user is invited and no role changed; users can be removed', async () => {
  const { ask, name, users, put } = await world();
  const email = newAddress();
  await accept((await put('u_1', email)).body.inviteUrl);
  await ask('PATCH', `/tenants/${name}`, { state: 'suspended' });
  expect(errorOf(await put('u_2', newAddress()))[1]).toBe('tenant_suspended');
  expect(errorOf(await put('u_1', email, 'member'))[1]).toBe('tenant_suspended');
  expect((await put('u_1', email)).status).toBe(200);
  expect((await ask('DELETE', `${users}/u_1`)).status).toBe(200);
});

test('refuses other roles, addresses that are none, names that are none and members that there are not', async () => {
  const { ask, users, put } = await world();
  expect(errorOf(await put('u_1', newAddress(), 'operator'))).toEqual([400, 'invalid_parameter', 'role']);
  for (const email of ['', 'asha', 'a@b@c', `${'a'.repeat(400)}@store.example`])
    expect([email.slice(0, 9), (await put('u_1', email)).status]).toEqual([email.slice(0, 9), 400]);
  for (const ref of ['.', 'a%2Fb', 'a%20b', 'a'.repeat(129)])
    expect([ref.slice(0, 9), (await put(ref, newAddress())).status]).toEqual([ref.slice(0, 9), 400]);
  const odd = await ask('PUT', `${users}/u_1`, { email: newAddress(), role: 'admin', name: 'x' });
  expect(odd.status).toBe(400);
  expect(errorOf(await ask('GET', `/tenants/${fresh().name}/users`))[1]).toBe('unknown_tenant');
});

test('one address gets three links a day of a tenant', async () => {
  const { put, ask, users } = await world();
  const email = newAddress();
  for (let n = 0; n < 3; n += 1) {
    expect((await put('u_1', email)).status).toBe(201);
    await ask('DELETE', `${users}/u_1`);
  }
  expect(errorOf(await put('u_1', email))).toEqual([429, 'too_many_links', null]);
});

test('each change is in the audit log with the platform key', async () => {
  const { ask, users, put, tenantId } = await world();
  await put('u_1', newAddress());
  await ask('DELETE', `${users}/u_1`);
  const actions = await queryColumn(
    api.database,
    `select action from audit_log where tenant_id = :tenantId and actor like 'platform key %' order by id desc limit 2`,
    { tenantId },
  );
  expect(actions).toEqual(['user.invitation_withdrawn', 'user.invited']);
});

test('the name that an expired invitation had is free for another one', async () => {
  const { put, tenantId } = await world();
  const authority = { actor: SYSTEM, tenantId: null, userId: null };
  const email = newAddress();
  await inviteUser({ database: api.database }, authority, { email, role: 'admin', tenantId, ref: 'u_1' });
  await query(api.database, 'update invitations set expires_at = now() where tenant_id = :tenantId', {
    tenantId,
  });
  expect((await put('u_1', email)).status).toBe(201);
});

test('where the installation sends e-mails, the link is in the e-mail and in no answer', async () => {
  const mail = { HELIOGRAPH_SMTP_URL: 'smtp://127.0.0.1:9', HELIOGRAPH_MAIL_FROM: 'gateway@gateway.example' };
  const mailing = await startTestApi(async () => ({ config: testConfig(mail) }));
  const ask = await platformClient(mailing);
  const { name } = await tenantOf(ask);
  const email = newAddress();
  const made = await ask('PUT', `/tenants/${name}/users/u_1`, { email, role: 'admin' });
  expect([made.status, made.body.inviteUrl]).toEqual([201, null]);
  expect(await queryColumn(mailing.database, 'select recipient from mails')).toEqual([email]);
});
