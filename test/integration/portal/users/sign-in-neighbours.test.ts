import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { freshTenant } from '../../../support/test-accounts.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import {
  addUser,
  linkIn,
  newOffice,
  newUser,
  openBrowser,
  PASSWORD,
  postSignedIn,
  signInWith,
} from '../portal-browser.ts';

const api = apiOfFile();

const SIGNED_IN = '__Host-heliograph';
const FAR = '203.0.113.50';
const OTHER_PASSWORD = 'of the other tenant’s making';

/** Sets the counts whose keys are like this to as many attempts as nobody may make. */
const exhaust = (pattern: string) =>
  execute(api.database, 'update rate_limits set points = 10000 where key like :pattern', { pattern });
const addCount = (key: string) =>
  execute(api.database, 'insert into rate_limits (key, points, expire) values (:key, 10000, :value)', {
    key: `sign-in-${key}`,
    value: Date.now() + 600_000,
  });

/** Two accounts of one address: that of its owner, and one that another tenant has made for it. */
async function twoAccounts(email: string) {
  const { tenantId } = await freshTenant(api.database);
  const owner = await addUser(api, { email, role: 'member', tenantId });
  const { admin, path } = await newOffice(api);
  const attacker = openBrowser(api.app);
  const link = linkIn(await postSignedIn(admin, `${path}/users/invite`, { email, role: 'member' }));
  await attacker.get(link);
  await attacker.post(link, { name: 'Asha', password: OTHER_PASSWORD });
  for (const browser of [owner, attacker]) browser.cookies.delete(SIGNED_IN);
  return { owner: openBrowser(api.app), attacker };
}

test('who makes an account for the address of another person cannot keep that person’s browser out', async () => {
  const email = 'victim@store.example';
  const { owner, attacker } = await twoAccounts(email);
  expect((await signInWith(owner, email)).statusCode).toBe(303);
  owner.cookies.delete(SIGNED_IN);
  expect((await signInWith(attacker, email, OTHER_PASSWORD)).statusCode).toBe(303);
  attacker.cookies.delete(SIGNED_IN);
  // What strangers try, and what the other tenant tries in browsers of its own account.
  await signInWith(openBrowser(api.app, FAR), email, 'wrong password!');
  await signInWith(attacker, email, 'wrong password!');
  const account = createHash('sha256').update(email).digest('base64url');
  await exhaust(`sign-in-account:${account}`);
  await exhaust('sign-in-known:%');
  await execute(
    api.database,
    `delete from rate_limits where key = 'sign-in-known:' || (select min(id) from users where email = :email)`,
    { email },
  );
  expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(429);
  expect((await signInWith(attacker, email, OTHER_PASSWORD)).statusCode).toBe(429);
  expect((await signInWith(owner, email)).statusCode).toBe(303);
});

test('a browser that is known for one account of an address has no further guesses for another one', async () => {
  const email = 'guessed@store.example';
  const { attacker } = await twoAccounts(email);
  expect((await signInWith(attacker, email, OTHER_PASSWORD)).statusCode).toBe(303);
  attacker.cookies.delete(SIGNED_IN);
  await signInWith(openBrowser(api.app, FAR), email, 'wrong password!');
  await exhaust(`sign-in-account:${createHash('sha256').update(email).digest('base64url')}`);
  // The owner's password is right, and is not tried.
  const guess = await signInWith(attacker, email, PASSWORD);
  expect([guess.statusCode, attacker.cookies.has(SIGNED_IN)]).toEqual([422, false]);
  expect((await signInWith(attacker, email, OTHER_PASSWORD)).statusCode).toBe(303);
});

test('a browser is known after the second of several accounts of an address has signed in there', async () => {
  const email = 'both@store.example';
  const { owner } = await twoAccounts(email);
  for (const password of [PASSWORD, OTHER_PASSWORD, PASSWORD]) {
    expect((await signInWith(owner, email, password)).statusCode).toBe(303);
    owner.cookies.delete(SIGNED_IN);
  }
});

test.each([
  ['/56', 'ip56:2001:db8:7:a00::/56'],
  ['/48', 'ip48:2001:db8:7::/48'],
])(
  'the networks of a customer of the size %s are counted together, and leave no rows of their own once they are refused',
  async (_size, key) => {
    const { email } = await newUser(api, (await freshTenant(api.database)).tenantId);
    await execute(api.database, 'delete from rate_limits');
    const known = openBrowser(api.app, '2001:db8:7:a01::1');
    expect((await signInWith(known, email)).statusCode).toBe(303);
    known.cookies.delete(SIGNED_IN);
    await execute(api.database, 'delete from rate_limits');
    await addCount(key);
    for (let network = 0; network < 4; network += 1) {
      const browser = openBrowser(api.app, `2001:db8:7:a1${network}::1`);
      expect(
        (await signInWith(browser, `nobody${network}@store.example`, 'wrong password!')).statusCode,
      ).toBe(429);
    }
    const rows = await query<{ key: string }>(api.database, 'select key from rate_limits order by key');
    expect(rows.every((row) => /^sign-in-ip(48|56):/.test(row.key))).toBe(true);
    expect((await signInWith(known, email)).statusCode).toBe(303);
    expect((await signInWith(openBrowser(api.app, '2001:db8:8::1'), email)).statusCode).toBe(303);
  },
);
