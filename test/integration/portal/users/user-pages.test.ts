import { beforeEach, expect, test } from 'vitest';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { OTHER_WABA, startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import {
  addUser,
  openBrowser,
  PASSWORD,
  type PortalBrowser,
  signInWith,
  tenantOf,
} from '../portal-browser.ts';

const USERS = '/portal/operator/users';

let api: TestApi;
let operator: PortalBrowser;
let tenantId: string;

beforeEach(async () => {
  api = await startTestApi();
  tenantId = await tenantOf(api.database, WABA);
  operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  await operator.get(USERS);
});

async function idOf(email: string): Promise<string> {
  const [row] = await query<{ id: string }>(api.database, 'select id from users where email = :email', {
    email,
  });
  return row?.id ?? '';
}

/** The role that a link gives, by accepting it. */
async function accepted(body: string): Promise<PortalBrowser> {
  const path = /\/portal\/invitations\/[\w-]+/.exec(body)?.[0] ?? '';
  const guest = openBrowser(api.app);
  await guest.get(path);
  expect((await guest.post(path, { name: 'Kim', password: PASSWORD })).statusCode).toBe(303);
  return guest;
}

test('an operator invites operators, and users of any tenant, by a link that is shown once', async () => {
  const other = await tenantOf(api.database, OTHER_WABA);
  const asked = await operator.post(`${USERS}/invite`, {
    email: 'two@host.example',
    role: 'operator',
    tenant: '',
  });
  expect(await markupProblems(asked.body)).toEqual([]);
  const second = await accepted(asked.body);
  expect((await second.get('/portal/operator/health')).statusCode).toBe(200);
  const invited = await operator.post(`${USERS}/invite`, {
    email: 'a@b.example',
    role: 'admin',
    tenant: other,
  });
  const admin = await accepted(invited.body);
  expect((await admin.get(`/portal/w/${OTHER_WABA}/users`)).statusCode).toBe(200);
  expect((await admin.get(`/portal/w/${WABA}`)).statusCode).toBe(404);
  expect((await operator.get(USERS)).body).not.toContain('/portal/invitations/');
});

test.each([
  [{ email: 'kim', role: 'admin', tenant: '1' }, 'is no e-mail address'],
  [{ email: 'kim@b.example', role: 'operator', tenant: '1' }, 'An operator belongs to no tenant.'],
  [{ email: 'kim@b.example', role: 'admin', tenant: '' }, 'needs a tenant'],
  [{ email: 'kim@b.example', role: 'admin', tenant: '999' }, 'There is no tenant'],
  [{ email: 'kim@b.example', role: 'admin', tenant: '"><b>' }, 'userId'],
  [
    { email: 'op@host.example', role: 'operator', tenant: '' },
    'There is an operator with this e-mail address already.',
  ],
])('an invitation of %j comes back with what is wrong', async (form, text) => {
  const answer = await operator.post(`${USERS}/invite`, form);
  expect(answer.statusCode).toBe(422);
  expect(answer.body).toContain(text);
  expect(answer.body).toContain(`value="${form.email}"`);
  expect(await markupProblems(answer.body)).toEqual([]);
});

test('an operator changes a role, locks somebody out at once and lets him in again, but not himself', async () => {
  const email = 'mo@store.example';
  const member = await addUser(api, { email, role: 'member', tenantId });
  const id = await idOf(email);
  await operator.get(USERS);
  const done = async (path: string, fields = {}) =>
    (await operator.post(`${USERS}/${id}/${path}`, fields)).headers.location;
  expect(await done('role', { role: 'admin' })).toBe(`${USERS}?done=role`);
  expect((await signInWith(member, email)).statusCode).toBe(303);
  expect((await member.get(`/portal/w/${WABA}/users`)).statusCode).toBe(200);
  expect(await done('disable')).toBe(`${USERS}?done=disabled`);
  expect((await member.get(`/portal/w/${WABA}/users`)).statusCode).toBe(303);
  expect(await done('enable')).toBe(`${USERS}?done=enabled`);
  const own = await operator.post(`${USERS}/${await idOf('op@host.example')}/disable`);
  expect([own.statusCode, own.body.includes('your own account')]).toEqual([422, true]);
});

test('the list is found through by text and tenant, and stays small with a thousand users', async () => {
  await execute(
    api.database,
    `with added as (
       insert into users (email, name) select 'user' || n || '@store.example', 'User ' || n from generate_series(1, 1000) n
       returning id)
     insert into memberships (user_id, tenant_id, role) select id, :tenantId, 'member' from added`,
    { tenantId },
  );
  const first = await operator.get(USERS);
  expect(first.rawPayload.length).toBeLessThan(100 * 1024);
  expect(first.body).toContain('Page 1 of 26');
  const last = await operator.get(`${USERS}?page=999`);
  expect(last.body).toContain('Page 26 of 26');
  const found = await operator.get(`${USERS}?find=USER777`);
  expect(found.body).toContain('user777@store.example');
  expect(found.body).not.toContain('user778@store.example');
  const other = await operator.get(`${USERS}?tenant=${await tenantOf(api.database, OTHER_WABA)}`);
  expect(other.body).toContain('Nothing found');
});
