import { TOTP } from 'otpauth';
import { beforeEach, expect, test } from 'vitest';
import { makePasswordLink } from '../../../../src/features/users/password-links.ts';
import { newSecondFactor } from '../../../../src/features/users/second-factor.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { startAdmin } from '../../../support/admin-cli.ts';
import { freshTenant, testSecretBox } from '../../../support/test-accounts.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import {
  joinTenant,
  linkIn,
  newOffice,
  newUser,
  type Office,
  openBrowser,
  PASSWORD,
  type PortalBrowser,
  postSignedIn,
  signInWith,
} from '../portal-browser.ts';

const BY_LINK = 'set through the link';
const NEXT = 'another one of the maker';
const FACTOR = '/portal/account/second-factor';
const CODE = '/portal/sign-in/code';

/** Moved on by tests, so that the next code need not be waited for. */
let nowMs = Date.now();
const api = apiOfFile(async () => ({ now: () => nowMs }));
let store: Office;
let users: string;

beforeEach(async () => {
  store = await newOffice(api);
  users = `${store.path}/users`;
});

const newOwner = (role = 'admin') => newUser(api, role === 'operator' ? null : store.tenantId, role);

/** A browser that is signed in with the password that an administrator set by a link for this user. */
async function signedInByLink({ email, id }: { email: string; id: string }): Promise<PortalBrowser> {
  const link = linkIn(await postSignedIn(store.admin, `${users}/${id}/password-link`));
  const browser = openBrowser(api.app);
  await browser.get(link);
  await browser.post(link, { password: BY_LINK });
  await signInWith(browser, email, BY_LINK);
  return browser;
}

/** Changes the password, and signs in with it in a new browser. */
async function changeAndSignIn(browser: PortalBrowser, email: string): Promise<PortalBrowser> {
  const change = { current: BY_LINK, password: NEXT };
  expect((await postSignedIn(browser, '/portal/account/password', change)).statusCode).toBe(303);
  const again = openBrowser(api.app);
  await signInWith(again, email, NEXT);
  return again;
}

const isMarked = async (browser: PortalBrowser) =>
  (await browser.get('/portal/account')).body.includes(`link made by ${store.adminEmail}</span>`);
const secretIn = (body: string) => (/data-copy="([A-Z2-7 ]{39})"/.exec(body)?.[1] ?? '').replaceAll(' ', '');
const sealedIn = (body: string) => /name="sealed" value="([^"]+)"/.exec(body)?.[1] ?? '';
const codeOf = (secret: string) => {
  nowMs += 30_000;
  return new TOTP({ secret }).generate({ timestamp: nowMs });
};
const setUpFactor = async (browser: PortalBrowser) => {
  const page = (await browser.get(FACTOR)).body;
  const secret = secretIn(page);
  return { secret, answer: await browser.post(FACTOR, { sealed: sealedIn(page), code: codeOf(secret) }) };
};
const factors = (id: string) => query(api.database, 'select from user_totp where user_id = :id', { id });

test('a password that is changed in a marked session stays marked: at the next sign-in, in the log and for notices', async () => {
  const owner = await newOwner();
  const again = await changeAndSignIn(await signedInByLink(owner), owner.email);
  const page = await again.get('/portal/account');
  expect(page.body).toContain(`set through a link made by ${store.adminEmail} on`);
  expect(await markupProblems(page.body)).toEqual([]);
  expect(page.body).not.toContain('I have read this');
  expect((await again.post('/portal/account/notices', { upTo: '999999999' })).statusCode).toBe(404);
  await postSignedIn(again, `${users}/invite`, { email: `by-${owner.email}`, role: 'member' });
  const [entry] = await query<{ detail: object }>(
    api.database,
    `select detail from audit_log where action = 'user.invited' and target = :email`,
    { email: `user by-${owner.email}` },
  );
  expect(entry?.detail).toMatchObject({ passwordLinkBy: store.adminEmail });
  const { tenantId } = await freshTenant(api.database);
  const further = { email: owner.email, role: 'admin', tenantId };
  const refused = await joinTenant(api, again, further);
  expect([refused.statusCode, refused.body.includes(store.adminEmail)]).toEqual([422, true]);
});

test('a marked session makes no link for its own account, which would be its own proof', async () => {
  const owner = await newOwner();
  const browser = await signedInByLink(owner);
  const refused = await postSignedIn(browser, `${users}/${owner.id}/password-link`);
  expect([refused.statusCode, linkIn(refused)]).toEqual([422, '']);
});

test('a marked session sets up no second factor, before and after the password is changed', async () => {
  const owner = await newOwner();
  const browser = await signedInByLink(owner);
  const page = await browser.get(FACTOR);
  expect([page.statusCode, page.body.includes(store.adminEmail)]).toEqual([422, true]);
  const { secret, sealed } = newSecondFactor(
    { secretBox: testSecretBox },
    { userId: owner.id, email: '' },
    null,
  );
  const code = new TOTP({ secret }).generate({ timestamp: nowMs });
  for (const marked of [browser, await changeAndSignIn(browser, owner.email)]) {
    const answer = await postSignedIn(marked, FACTOR, { sealed, code });
    expect([answer.statusCode, answer.body.includes(store.adminEmail)]).toEqual([422, true]);
  }
  expect(await factors(owner.id)).toEqual([]);
});

test('a marked session that has set one up before this rule gets no recovery codes and cannot remove it', async () => {
  const owner = await newOwner();
  await setUpFactor(owner.browser);
  const browser = await signedInByLink(owner);
  // As if the sign-in had needed no code.
  await query(
    api.database,
    'update user_sessions set second_factor_at = now() where user_id = :id returning id',
    { id: owner.id },
  );
  expect((await postSignedIn(browser, `${FACTOR}/recovery-codes`)).statusCode).toBe(422);
  expect((await postSignedIn(browser, `${FACTOR}/remove`)).statusCode).toBe(422);
  expect(await factors(owner.id)).toHaveLength(1);
});

test('a second factor from before the link proves who signs in: the session is not marked, and its password is its own', async () => {
  const owner = await newOwner();
  const { secret } = await setUpFactor(owner.browser);
  const browser = await signedInByLink(owner);
  await browser.get(CODE);
  expect((await browser.post(CODE, { code: codeOf(secret), next: '/portal' })).statusCode).toBe(303);
  expect(await isMarked(browser)).toBe(false);
  await changeAndSignIn(browser, owner.email);
  expect(
    await query(api.database, 'select password_link_by as by from users where id = :id', { id: owner.id }),
  ).toEqual([{ by: null }]);
});

test('a second factor that is set is in the notices of its owner', async () => {
  const owner = await newOwner('member');
  await setUpFactor(owner.browser);
  const page = await owner.browser.get(store.path);
  expect(page.body).toContain('a second factor was set up');
  expect(await markupProblems(page.body)).toEqual([]);
});

test('a mailed link ends the mark', async () => {
  const owner = await newOwner();
  await signedInByLink(owner);
  const mailer = { secretBox: testSecretBox, publicUrl: 'https://gateway.example' };
  const authority = { actor: SYSTEM, tenantId: null, userId: null };
  const { path } = await makePasswordLink({ database: api.database, mailer }, authority, owner.id);
  await owner.browser.get(path);
  await owner.browser.post(path, { password: PASSWORD });
  const browser = openBrowser(api.app);
  await signInWith(browser, owner.email, PASSWORD);
  expect(await isMarked(browser)).toBe(false);
  expect((await setUpFactor(browser)).answer.statusCode).toBe(200);
});

test('another operator than the maker ends the mark, after which the user signs in again', async () => {
  const owner = await newOwner();
  const browser = await changeAndSignIn(await signedInByLink(owner), owner.email);
  const { browser: operator, email: voucher } = await newUser(api, null);
  const sessions = `/portal/operator/users/${owner.id}/sessions`;
  const page = await operator.get(sessions);
  expect(page.body).toContain('Confirm the password');
  expect(await markupProblems(page.body)).toEqual([]);
  const confirm = `/portal/operator/users/${owner.id}/confirm-password`;
  expect((await operator.post(confirm)).headers.location).toBe(`${sessions}?done=confirmed`);
  expect((await browser.get('/portal/account')).statusCode).toBe(303);
  await signInWith(browser, owner.email, NEXT);
  const account = await browser.get('/portal/account');
  expect(account.body).not.toContain(`set through a link made by ${store.adminEmail} on`);
  expect(account.body).toContain(`${voucher} confirmed`);
  expect((await operator.post(confirm)).statusCode).toBe(422);
});

test('an operator does not confirm the password of a link that the same operator made', async () => {
  const owner = await newOwner('operator');
  const operator = (await newUser(api, null)).browser;
  const made = linkIn(await postSignedIn(operator, `/portal/operator/users/${owner.id}/password-link`));
  const browser = openBrowser(api.app);
  await browser.get(made);
  await browser.post(made, { password: BY_LINK });
  const refused = await postSignedIn(operator, `/portal/operator/users/${owner.id}/confirm-password`);
  expect([refused.statusCode, refused.body.includes('another operator')]).toEqual([422, true]);
});

test('the command line confirms a password', async () => {
  const { admin, json, database } = await startAdmin();
  const email = 'asha@store.example';
  await query(
    database,
    `insert into users (email, name, is_operator, password_link_by, password_link_at)
     values (:email, 'Asha', true, 'ravi@host.example', now()) returning id`,
    { email },
  );
  expect(await json('user', 'confirm-password', email)).toMatchObject({ email, state: 'confirmed' });
  expect(await query(database, 'select password_link_by as by from users')).toEqual([{ by: null }]);
  expect((await admin(['user', 'confirm-password', email])).exitCode).not.toBe(0);
});
