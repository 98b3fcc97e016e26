import { afterAll, beforeAll, expect, test } from 'vitest';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { OTHER_WABA, startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { addUser, linkIn, type PortalBrowser, tenantOf } from '../portal-browser.ts';

let api: TestApi;
let close: () => Promise<void>;
let admin: PortalBrowser;
let other: PortalBrowser;
let operator: PortalBrowser;

beforeAll(async () => {
  api = await startTestApi(undefined, (closeApi) => {
    close = closeApi;
  });
  const { database } = api;
  const admins = { email: 'admin@store.example', role: 'admin', tenantId: await tenantOf(database, WABA) };
  admin = await addUser(api, admins);
  const others = {
    email: 'admin@other.example',
    role: 'admin',
    tenantId: await tenantOf(database, OTHER_WABA),
  };
  other = await addUser(api, others);
  operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  for (const browser of [admin, other, operator]) await browser.get('/portal/account');
});
afterAll(() => close());

const invite = (email: string, browser = admin, waba = WABA) =>
  browser.post(`/portal/w/${waba}/users/invite`, { email, role: 'member' });
const forget = () => execute(api.database, 'delete from rate_limits');

test('a tenant makes three links a day for one address, and stops nobody else from inviting it', async () => {
  await forget();
  const email = 'victim@elsewhere.example';
  for (let count = 0; count < 3; count += 1) expect(linkIn(await invite(email))).not.toBe('');
  const refused = await invite(email.toUpperCase());
  expect([refused.statusCode, linkIn(refused), refused.body.includes('3 links')]).toEqual([422, '', true]);
  // The last link that was made still works.
  const open = await query(api.database, 'select from invitations where email = ? and accepted_at is null', [
    email,
  ]);
  expect(open).toHaveLength(1);
  expect(linkIn(await invite(email, other, OTHER_WABA))).not.toBe('');
  expect(linkIn(await invite('another@elsewhere.example'))).not.toBe('');
});

test('a tenant makes twenty links an hour, for invitations and passwords together; operators and other tenants have no part in it', async () => {
  await forget();
  const [member] = await query<{ id: string }>(
    api.database,
    `select u.id from users u join memberships m on m.user_id = u.id where m.role = 'admin' and u.email = ?`,
    ['admin@store.example'],
  );
  expect(linkIn(await admin.post(`/portal/w/${WABA}/users/${member?.id}/password-link`))).not.toBe('');
  for (let count = 1; count < 20; count += 1) {
    expect(linkIn(await invite(`person${count}@store.example`))).not.toBe('');
  }
  for (const refused of [
    await invite('one-more@store.example'),
    await admin.post(`/portal/w/${WABA}/users/${member?.id}/password-link`),
  ]) {
    expect([refused.statusCode, refused.body.includes('20 links')]).toEqual([422, true]);
  }
  expect(linkIn(await invite('one-more@store.example', other, OTHER_WABA))).not.toBe('');
  const given = {
    email: 'one-more@store.example',
    role: 'member',
    tenant: await tenantOf(api.database, WABA),
  };
  for (let count = 0; count < 4; count += 1) {
    expect(linkIn(await operator.post('/portal/operator/users/invite', given))).not.toBe('');
  }
});
