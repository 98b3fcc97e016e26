import { beforeEach, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { linkIn, newOffice, newUser, type Office } from '../portal-browser.ts';

const api = apiOfFile();
let store: Office;
let other: Office;

beforeEach(async () => {
  store = await newOffice(api);
  other = await newOffice(api);
  for (const { admin } of [store, other]) await admin.get('/portal/account');
});

const invite = (email: string, { admin, path } = store) =>
  admin.post(`${path}/users/invite`, { email, role: 'member' });

test('a tenant makes three links a day for one address, and stops nobody else from inviting it', async () => {
  const email = 'victim@elsewhere.example';
  for (let count = 0; count < 3; count += 1) expect(linkIn(await invite(email))).not.toBe('');
  const refused = await invite(email.toUpperCase());
  expect([refused.statusCode, linkIn(refused), refused.body.includes('3 links')]).toEqual([422, '', true]);
  // The last link that was made still works.
  const unused = 'select from invitations where email = :email and accepted_at is null';
  const open = await query(api.database, unused, { email });
  expect(open).toHaveLength(1);
  expect(linkIn(await invite(email, other))).not.toBe('');
  expect(linkIn(await invite('another@elsewhere.example'))).not.toBe('');
});

test('a tenant makes twenty links an hour, for invitations and passwords together; operators and other tenants have no part in it', async () => {
  const { path, admin, tenantId } = store;
  const [member] = await query<{ id: string }>(
    api.database,
    'select id from users where email = :adminEmail',
    { adminEmail: store.adminEmail },
  );
  expect(linkIn(await admin.post(`${path}/users/${member?.id}/password-link`))).not.toBe('');
  for (let count = 1; count < 20; count += 1) {
    expect(linkIn(await invite(`person${count}@store.example`))).not.toBe('');
  }
  for (const refused of [
    await invite('one-more@store.example'),
    await admin.post(`${path}/users/${member?.id}/password-link`),
  ]) {
    expect([refused.statusCode, refused.body.includes('20 links')]).toEqual([422, true]);
  }
  expect(linkIn(await invite('one-more@store.example', other))).not.toBe('');
  const { browser: operator } = await newUser(api, null);
  await operator.get('/portal/account');
  const given = { email: 'one-more@store.example', role: 'member', tenant: tenantId };
  for (let count = 0; count < 4; count += 1) {
    expect(linkIn(await operator.post('/portal/operator/users/invite', given))).not.toBe('');
  }
});
