import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTenant } from '../../../../src/accounts/accounts.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { forgetUsersWithoutTenant } from '../../../../src/users/user-store.ts';
import { OTHER_WABA, startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import {
  addUser,
  joinTenant,
  linkIn,
  openBrowser,
  type PortalBrowser,
  postSignedIn,
  signInWith,
  tenantOf,
} from '../portal-browser.ts';

/** What an administrator of the first tenant, who means no good, takes as a password for others' addresses. */
const TAKEN = 'known to the attacker only';
const OWN = 'a sentence of my own';

let api: TestApi;
let close: () => Promise<void>;
let tenantId: string;
let otherTenantId: string;
let admin: PortalBrowser;
let otherAdmin: PortalBrowser;
let operator: PortalBrowser;

const USERS = `/portal/w/${WABA}/users`;
const OTHER_USERS = `/portal/w/${OTHER_WABA}/users`;

beforeAll(async () => {
  api = await startTestApi(undefined, (closeApi) => {
    close = closeApi;
  });
  tenantId = await tenantOf(api.database, WABA);
  otherTenantId = await tenantOf(api.database, OTHER_WABA);
  admin = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  otherAdmin = await addUser(api, { email: 'admin@bazaar.example', role: 'admin', tenantId: otherTenantId });
  operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
});
afterAll(() => close());

let count = 0;
const newEmail = () => {
  count += 1;
  return `person${count}@elsewhere.example`;
};
const invite = async (browser: PortalBrowser, page: string, email: string, role = 'member') =>
  linkIn(await postSignedIn(browser, `${page}/invite`, { email, role }));
const accept = async (link: string, password: string) => {
  const browser = openBrowser(api.app);
  await browser.get(link);
  return { browser, answer: await browser.post(link, { name: 'Somebody', password }) };
};
const start = async (browser: PortalBrowser) => (await browser.get('/portal')).headers.location;
const usersOf = async (email: string) =>
  (
    await query<{ id: string }>(api.database, 'select id from users where email = ? order by id', [email])
  ).map(({ id }) => id);

/** The first tenant's administrator opens his invitation of somebody else's address himself. */
async function take(email: string): Promise<PortalBrowser> {
  const { browser, answer } = await accept(await invite(admin, USERS, email, 'admin'), TAKEN);
  expect(answer.statusCode).toBe(303);
  return browser;
}

describe('an address that a tenant took for itself', () => {
  test('is not blocked for another tenant nor for the operator, and opens nothing there', async () => {
    const email = newEmail();
    const attacker = await take(email);
    const { browser: owner, answer } = await accept(await invite(otherAdmin, OTHER_USERS, email), OWN);
    expect(answer.statusCode).toBe(303);
    expect(await start(owner)).toBe(`/portal/w/${OTHER_WABA}`);
    expect((await owner.get(`/portal/w/${WABA}`)).statusCode).toBe(404);
    const asOperator = await postSignedIn(operator, '/portal/operator/users/invite', {
      email,
      role: 'operator',
      tenant: '',
    });
    expect(asOperator.statusCode).toBe(200);
    for (const browser of [attacker, openBrowser(api.app)]) {
      if (browser !== attacker) expect((await signInWith(browser, email, TAKEN)).statusCode).toBe(303);
      expect(await start(browser)).toBe(`/portal/w/${WABA}`);
      expect((await browser.get(`/portal/w/${OTHER_WABA}`)).statusCode).toBe(404);
      expect((await browser.get('/portal/operator/users')).statusCode).toBe(403);
      expect((await browser.get('/portal/account')).body).not.toContain('Fixture Bazaar');
    }
    const again = openBrowser(api.app);
    expect((await signInWith(again, email, OWN)).statusCode).toBe(303);
    expect(await start(again)).toBe(`/portal/w/${OTHER_WABA}`);
  });

  test('and that has no account, and one that another tenant has, are answered alike', async () => {
    const [known, unknown] = [newEmail(), newEmail()];
    await accept(await invite(otherAdmin, OTHER_USERS, known), OWN);
    const plain = (text: string, email: string) =>
      text
        .replaceAll(email, 'EMAIL')
        .replaceAll(/\/portal\/invitations\/[\w-]{43}/g, 'LINK')
        .replaceAll(/%2Fportal%2Finvitations%2F[\w-]{43}/g, 'LINK')
        .replaceAll(/name="_csrf" value="[^"]+"|<time.*?<\/time>/g, '');
    const seen = await Promise.all(
      [known, unknown].map(async (email) => {
        const made = await postSignedIn(admin, `${USERS}/invite`, { email, role: 'member' });
        const guest = openBrowser(api.app);
        const form = await guest.get(linkIn(made));
        const weak = await guest.post(linkIn(made), { name: 'A', password: 'short' });
        const done = await guest.post(linkIn(made), { name: 'A', password: TAKEN });
        const account = await guest.get('/portal/account');
        const pages = [made, form, weak].map(({ body }) => plain(body, email));
        const tenants = /<h2>Tenants<\/h2>[\s\S]*?<\/table>/.exec(account.body)?.[0];
        return { pages, status: done.statusCode, to: done.headers.location, tenants };
      }),
    );
    expect(seen[0]).toEqual(seen[1]);
  });

  test('gives whoever signs in to his account no more guesses for the one of its owner', async () => {
    const email = newEmail();
    await take(email);
    await accept(await invite(otherAdmin, OTHER_USERS, email), OWN);
    const key = `sign-in-account:${createHash('sha256').update(email).digest('base64url')}`;
    await execute(api.database, 'delete from rate_limits where key = ?', [key]);
    expect((await signInWith(openBrowser(api.app), email, 'a wrong guess!!')).statusCode).toBe(422);
    await execute(api.database, 'update rate_limits set points = 299 where key = ?', [key]);
    expect((await signInWith(openBrowser(api.app), email, TAKEN)).statusCode).toBe(303);
    expect((await signInWith(openBrowser(api.app), email, 'a wrong guess!!')).statusCode).toBe(429);
  });

  test('takes only so many passwords by invitations, each of which would join the account that it opens', async () => {
    const email = newEmail();
    await accept(await invite(otherAdmin, OTHER_USERS, email), OWN);
    await take(email);
    const account = createHash('sha256').update(`invitation of ${email}`).digest('base64url');
    const rows = await query(api.database, 'select points from rate_limits where key = ?', [
      `sign-in-account:${account}`,
    ]);
    expect(rows).toEqual([{ points: 2 }]);
    await execute(api.database, 'update rate_limits set points = 300 where key = ?', [
      `sign-in-account:${account}`,
    ]);
    const [taken = ''] = (await usersOf(email)).slice(1);
    await postSignedIn(admin, `${USERS}/${taken}/remove`);
    const { answer } = await accept(await invite(admin, USERS, email), OWN);
    expect(answer.statusCode).toBe(429);
    expect((await signInWith(openBrowser(api.app), email, OWN)).statusCode).toBe(303);
  });

  test('fills no tenant’s audit log with the sign-ins of its owner', async () => {
    const email = newEmail();
    await take(email);
    await accept(await invite(otherAdmin, OTHER_USERS, email), OWN);
    await signInWith(openBrowser(api.app), email, 'mistyped by the owner');
    const failures = () =>
      query(
        api.database,
        `select tenant_id from audit_log where action = 'user.sign_in_failed' and target = ?`,
        [`user ${email}`],
      );
    await expect.poll(failures).toEqual([{ tenant_id: null }]);
    const ofOwner = await query<{ tenant_id: string }>(
      api.database,
      `select tenant_id from audit_log where actor_user_id = ? and tenant_id is not null`,
      [(await usersOf(email))[1] ?? ''],
    );
    expect(new Set(ofOwner.map((row) => row.tenant_id))).toEqual(new Set([otherTenantId]));
  });

  test('loses only its own links when its member there is removed', async () => {
    const email = newEmail();
    await take(email);
    const { browser: owner } = await accept(await invite(otherAdmin, OTHER_USERS, email, 'admin'), OWN);
    const kept = await invite(owner, OTHER_USERS, newEmail());
    const [taken = ''] = await usersOf(email);
    expect((await postSignedIn(admin, `${USERS}/${taken}/remove`)).headers.location).toBe(
      `${USERS}?done=removed`,
    );
    expect((await openBrowser(api.app).get(kept)).statusCode).toBe(200);
    expect(await start(owner)).toBe(`/portal/w/${OTHER_WABA}`);
    expect((await signInWith(openBrowser(api.app), email, TAKEN)).statusCode).toBe(422);
  });
});

describe('a further tenant', () => {
  test('is joined with one’s account by opening the link while signed in, and by nobody else', async () => {
    const email = newEmail();
    const browser = await addUser(api, { email, role: 'member', tenantId });
    const link = await invite(otherAdmin, OTHER_USERS, email, 'admin');
    const other = await addUser(api, { email: newEmail(), role: 'member', tenantId });
    expect((await other.get(link)).body).toContain('Sign out, and open the link again.');
    expect((await other.post(link)).statusCode).toBe(422);
    const question = await browser.get(link);
    expect(question.body).toContain('You join with this account');
    expect(await markupProblems(question.body)).toEqual([]);
    expect((await browser.post(link)).headers.location).toBe('/portal');
    expect(await usersOf(email)).toHaveLength(1);
    expect(await start(browser)).toBe(`/portal/w/${OTHER_WABA}`);
    expect((await browser.get(link)).statusCode).toBe(404);
  });

  test('is joined with one’s account by giving its password to the invitation', async () => {
    const email = newEmail();
    await accept(await invite(admin, USERS, email), OWN);
    const { browser, answer } = await accept(await invite(otherAdmin, OTHER_USERS, email), OWN);
    expect(answer.statusCode).toBe(303);
    expect(await usersOf(email)).toHaveLength(1);
    const account = await browser.get('/portal/account');
    expect(account.body).toContain('Fixture Store');
    expect(account.body).toContain('>Switch<');
  });

  test('shows nothing and takes nothing before one goes there, and the one before is left', async () => {
    const email = newEmail();
    const browser = await addUser(api, { email, role: 'member', tenantId });
    await joinTenant(api, browser, { email, role: 'admin', tenantId: otherTenantId });
    const paths = ['', '/deliveries', '/conversations', '/endpoints', '/keys', '/audit'];
    const seen = async (waba: string) => {
      const answers = paths.map((path) => browser.get(`/portal/w/${waba}${path}`));
      return new Set((await Promise.all(answers)).map(({ statusCode }) => statusCode));
    };
    expect([await seen(OTHER_WABA), await seen(WABA)]).toEqual([new Set([200]), new Set([404])]);
    const page = await browser.get(`/portal/w/${OTHER_WABA}`);
    expect(page.body).toContain('<details class="switcher">');
    expect(await markupProblems(page.body)).toEqual([]);
    expect((await postSignedIn(browser, '/portal/tenant', { tenant: tenantId })).headers.location).toBe(
      '/portal',
    );
    expect([await seen(OTHER_WABA), await seen(WABA)]).toEqual([new Set([404]), new Set([200])]);
    // Administrator there, plain member here.
    expect((await browser.get(USERS)).statusCode).toBe(403);
    const entries = await query(
      api.database,
      `select tenant_id from audit_log where actor = ? and action = 'user.signed_in' order by id`,
      [email],
    );
    expect(entries).toEqual([tenantId, otherTenantId, tenantId].map((id) => ({ tenant_id: id })));
  });

  test('that one does not belong to cannot be gone to', async () => {
    const browser = await addUser(api, { email: newEmail(), role: 'admin', tenantId });
    for (const tenant of [otherTenantId, '', '0', 'x', '%00']) {
      expect((await postSignedIn(browser, '/portal/tenant', { tenant })).statusCode).toBe(404);
    }
    expect(await start(browser)).toBe(`/portal/w/${WABA}`);
  });

  test('is worked in by an operator with the rights there, and no others', async () => {
    const email = newEmail();
    const browser = await addUser(api, { email, role: 'operator', tenantId: null });
    await joinTenant(api, browser, { email, role: 'member', tenantId });
    expect((await browser.get('/portal/operator/users')).statusCode).toBe(403);
    expect((await browser.get(`/portal/w/${OTHER_WABA}`)).statusCode).toBe(404);
    await postSignedIn(browser, '/portal/tenant', { tenant: '' });
    expect((await browser.get('/portal/operator/users')).statusCode).toBe(200);
  });
});

describe('a membership', () => {
  test('that is removed ends access at once, here only, and the last one ends the account', async () => {
    const email = newEmail();
    const here = await addUser(api, { email, role: 'member', tenantId });
    const there = openBrowser(api.app);
    await signInWith(there, email);
    await joinTenant(api, there, { email, role: 'member', tenantId: otherTenantId });
    const [id = ''] = await usersOf(email);
    const question = await admin.get(`${USERS}/${id}/remove`);
    expect(question.body).toContain('loses all access to Fixture Store');
    expect(await markupProblems(question.body)).toEqual([]);
    await postSignedIn(admin, `${USERS}/${id}/remove`);
    expect((await here.get('/portal/account')).statusCode).toBe(303);
    expect(await start(there)).toBe(`/portal/w/${OTHER_WABA}`);
    expect((await there.get('/portal/account')).body).not.toContain('Fixture Store');
    expect((await postSignedIn(there, '/portal/tenant', { tenant: tenantId })).statusCode).toBe(404);
    await postSignedIn(otherAdmin, `${OTHER_USERS}/${id}/remove`);
    expect((await there.get('/portal/account')).statusCode).toBe(303);
    expect((await signInWith(there, email)).statusCode).toBe(422);
    expect(await usersOf(email)).toEqual([]);
    const log = await admin.get(`/portal/w/${WABA}/audit?action=user.removed`);
    expect(log.body).toContain(`user ${email}`);
  });

  test('is not ended by a role or a lock elsewhere', async () => {
    const email = newEmail();
    const browser = await addUser(api, { email, role: 'admin', tenantId });
    await joinTenant(api, browser, { email, role: 'admin', tenantId: otherTenantId });
    const [id = ''] = await usersOf(email);
    await postSignedIn(admin, `${USERS}/${id}/disable`);
    expect(await start(browser)).toBe(`/portal/w/${OTHER_WABA}`);
    expect((await postSignedIn(browser, '/portal/tenant', { tenant: tenantId })).statusCode).toBe(404);
    expect(await start(browser)).toBe(`/portal/w/${OTHER_WABA}`);
  });

  test('of a tenant tells nothing of the others of its user', async () => {
    const email = newEmail();
    const browser = await addUser(api, { email, role: 'member', tenantId });
    await execute(api.database, 'update memberships set last_sign_in_at = null where user_id = ?', [
      (await usersOf(email))[0] ?? '',
    ]);
    await joinTenant(api, browser, { email, role: 'member', tenantId: otherTenantId });
    const row = new RegExp(`${email}[\\s\\S]*?</tr>`).exec((await admin.get(USERS)).body)?.[0];
    expect(row).toContain('never');
  });

  test('of the last administrator stays when two remove each other at the same time', async () => {
    const { userId } = await createTenant({ database: api.database, actor: SYSTEM }, 'Duel');
    await execute(api.database, 'insert into wabas (waba_id, tenant_id) values (?, ?)', [
      '900000000000303',
      userId,
    ]);
    const page = '/portal/w/900000000000303/users';
    const emails = [newEmail(), newEmail()];
    const browsers: PortalBrowser[] = [];
    for (const email of emails) browsers.push(await addUser(api, { email, role: 'admin', tenantId: userId }));
    const ids = await Promise.all(emails.map(async (email) => (await usersOf(email))[0] ?? ''));
    for (const browser of browsers) await browser.get(page);
    await Promise.all(browsers.map((browser, at) => browser.post(`${page}/${ids[1 - at]}/remove`)));
    expect((await Promise.all(emails.map(usersOf))).flat()).toHaveLength(1);
  });

  test('ends with its tenant, and so does an account that belongs nowhere then', async () => {
    const { userId } = await createTenant({ database: api.database, actor: SYSTEM }, 'Short-lived');
    const email = newEmail();
    const browser = await addUser(api, { email, role: 'admin', tenantId: userId });
    expect((await browser.get('/portal')).statusCode).toBe(200);
    await execute(api.database, 'delete from tenants where id = ?', [userId]);
    expect((await browser.get('/portal')).headers.location).toContain('/portal/sign-in');
    await forgetUsersWithoutTenant(api.database, 100);
    expect(await usersOf(email)).toEqual([]);
    expect(await usersOf('op@host.example')).toHaveLength(1);
  });
});

test('an operator removes an account everywhere, but neither himself nor the last of them', async () => {
  const email = newEmail();
  const browser = await addUser(api, { email, role: 'admin', tenantId });
  await joinTenant(api, browser, { email, role: 'admin', tenantId: otherTenantId });
  const [id = ''] = await usersOf(email);
  const question = await operator.get(`/portal/operator/users/${id}/remove`);
  expect(question.body).toContain('Fixture Store');
  expect(await markupProblems(question.body)).toEqual([]);
  const done = await postSignedIn(operator, `/portal/operator/users/${id}/remove`);
  expect(done.headers.location).toBe('/portal/operator/users?done=removed');
  expect((await browser.get('/portal/account')).statusCode).toBe(303);
  const [own = ''] = await usersOf('op@host.example');
  expect((await postSignedIn(operator, `/portal/operator/users/${own}/remove`)).statusCode).toBe(422);
});

test('a password that opens two accounts of an address leads to the one used last, and says so', async () => {
  const email = newEmail();
  await accept(await invite(admin, USERS, email), TAKEN);
  const { browser } = await accept(await invite(otherAdmin, OTHER_USERS, email), OWN);
  await browser.get('/portal/account');
  await browser.post('/portal/account/password', { current: OWN, password: TAKEN });
  const again = openBrowser(api.app);
  expect((await signInWith(again, email, TAKEN)).headers.location).toBe('/portal/account?done=several');
  expect((await again.get('/portal/account?done=several')).body).toContain('opens several accounts');
  expect(await start(again)).toBe(`/portal/w/${OTHER_WABA}`);
});
