import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { createTenant } from '../../../../src/features/accounts/accounts.ts';
import { forgetUsersWithoutTenant } from '../../../../src/features/users/user-store.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { freshTenant } from '../../../support/test-accounts.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import {
  joinTenant,
  linkIn,
  newOffice,
  newUser,
  type Office,
  openBrowser,
  type PortalBrowser,
  postSignedIn,
  signInWith,
} from '../portal-browser.ts';

/** What an administrator of the first tenant, who means no good, takes as a password for others' addresses. */
const TAKEN = 'known to the attacker only';
const OWN = 'a sentence of my own';

const api = apiOfFile();
let store: Office;
let other: Office;

beforeEach(async () => {
  store = await newOffice(api);
  other = await newOffice(api, 'Fixture Bazaar');
});

let count = 0;
const newEmail = () => {
  count += 1;
  return `person${count}@elsewhere.example`;
};
const invite = async ({ admin, path }: Office, email: string, role = 'member') =>
  linkIn(await postSignedIn(admin, `${path}/users/invite`, { email, role }));
const accept = async (link: string, password: string) => {
  const browser = openBrowser(api.app);
  await browser.get(link);
  return { browser, answer: await browser.post(link, { name: 'Somebody', password }) };
};
const start = async (browser: PortalBrowser) => (await browser.get('/portal')).headers.location;
const usersOf = async (email: string) =>
  (
    await query<{ id: string }>(api.database, 'select id from users where email = :email order by id', {
      email,
    })
  ).map(({ id }) => id);

/** The first tenant's administrator opens his invitation of somebody else's address himself. */
async function take(email: string): Promise<PortalBrowser> {
  const { browser, answer } = await accept(await invite(store, email, 'admin'), TAKEN);
  expect(answer.statusCode).toBe(303);
  return browser;
}

describe('an address that a tenant took for itself', () => {
  test('is not blocked for another tenant nor for the operator, and opens nothing there', async () => {
    const email = newEmail();
    const attacker = await take(email);
    const { browser: owner, answer } = await accept(await invite(other, email), OWN);
    expect(answer.statusCode).toBe(303);
    expect(await start(owner)).toBe(other.path);
    expect((await owner.get(store.path)).statusCode).toBe(404);
    const { browser: operator } = await newUser(api, null);
    const asOperator = await postSignedIn(operator, '/portal/operator/users/invite', {
      email,
      role: 'operator',
      tenant: '',
    });
    expect(asOperator.statusCode).toBe(200);
    for (const browser of [attacker, openBrowser(api.app)]) {
      if (browser !== attacker) expect((await signInWith(browser, email, TAKEN)).statusCode).toBe(303);
      expect(await start(browser)).toBe(store.path);
      expect((await browser.get(other.path)).statusCode).toBe(404);
      expect((await browser.get('/portal/operator/users')).statusCode).toBe(403);
      expect((await browser.get('/portal/account')).body).not.toContain('Fixture Bazaar');
    }
    const again = openBrowser(api.app);
    expect((await signInWith(again, email, OWN)).statusCode).toBe(303);
    expect(await start(again)).toBe(other.path);
  });

  test('and that has no account, and one that another tenant has, are answered alike', async () => {
    const [known, unknown] = [newEmail(), newEmail()];
    await accept(await invite(other, known), OWN);
    const plain = (text: string, email: string) =>
      text
        .replaceAll(email, 'EMAIL')
        .replaceAll(/\/portal\/invitations\/[\w-]{43}/g, 'LINK')
        .replaceAll(/%2Fportal%2Finvitations%2F[\w-]{43}/g, 'LINK')
        .replaceAll(/name="_csrf" value="[^"]+"|<time.*?<\/time>/g, '');
    const seen = await Promise.all(
      [known, unknown].map(async (email) => {
        const made = await postSignedIn(store.admin, `${store.path}/users/invite`, { email, role: 'member' });
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
    await accept(await invite(other, email), OWN);
    const key = `sign-in-account:${createHash('sha256').update(email).digest('base64url')}`;
    await execute(api.database, 'delete from rate_limits where key = :key', { key });
    expect((await signInWith(openBrowser(api.app), email, 'a wrong guess!!')).statusCode).toBe(422);
    await execute(api.database, 'update rate_limits set points = 299 where key = :key', { key });
    expect((await signInWith(openBrowser(api.app), email, TAKEN)).statusCode).toBe(303);
    expect((await signInWith(openBrowser(api.app), email, 'a wrong guess!!')).statusCode).toBe(429);
  });

  test('takes only so many passwords by invitations, each of which would join the account that it opens', async () => {
    const email = newEmail();
    await accept(await invite(other, email), OWN);
    await take(email);
    const account = createHash('sha256').update(`invitation of ${email}`).digest('base64url');
    const rows = await query(api.database, 'select points from rate_limits where key = :account', {
      account: `sign-in-account:${account}`,
    });
    expect(rows).toEqual([{ points: 2 }]);
    await execute(api.database, 'update rate_limits set points = 300 where key = :account', {
      account: `sign-in-account:${account}`,
    });
    const [taken = ''] = (await usersOf(email)).slice(1);
    await postSignedIn(store.admin, `${store.path}/users/${taken}/remove`);
    const { answer } = await accept(await invite(store, email), OWN);
    expect(answer.statusCode).toBe(429);
    expect((await signInWith(openBrowser(api.app), email, OWN)).statusCode).toBe(303);
  });

  test('fills no tenant’s audit log with the sign-ins of its owner', async () => {
    const email = newEmail();
    await take(email);
    await accept(await invite(other, email), OWN);
    await signInWith(openBrowser(api.app), email, 'mistyped by the owner');
    const failures = () =>
      query(
        api.database,
        `select tenant_id from audit_log where action = 'user.sign_in_failed' and target = :email`,
        { email: `user ${email}` },
      );
    await expect.poll(failures).toEqual([{ tenant_id: null }]);
    const ofOwner = await query<{ tenant_id: string }>(
      api.database,
      `select tenant_id from audit_log where actor_user_id = :users and tenant_id is not null`,
      { users: (await usersOf(email))[1] ?? '' },
    );
    expect(new Set(ofOwner.map((row) => row.tenant_id))).toEqual(new Set([other.tenantId]));
  });

  test('loses only its own links when its member there is removed', async () => {
    const email = newEmail();
    await take(email);
    const { browser: owner } = await accept(await invite(other, email, 'admin'), OWN);
    const kept = await invite({ ...other, admin: owner }, newEmail());
    const [taken = ''] = await usersOf(email);
    expect((await postSignedIn(store.admin, `${store.path}/users/${taken}/remove`)).headers.location).toBe(
      `${store.path}/users?done=removed`,
    );
    expect((await openBrowser(api.app).get(kept)).statusCode).toBe(200);
    expect(await start(owner)).toBe(other.path);
    expect((await signInWith(openBrowser(api.app), email, TAKEN)).statusCode).toBe(422);
  });
});

describe('a further tenant', () => {
  test('is joined with one’s account by opening the link while signed in, and by nobody else', async () => {
    const { email, browser } = await newUser(api, store.tenantId);
    const link = await invite(other, email, 'admin');
    const { browser: stranger } = await newUser(api, store.tenantId);
    expect((await stranger.get(link)).body).toContain('Sign out, and open the link again.');
    expect((await stranger.post(link)).statusCode).toBe(422);
    const question = await browser.get(link);
    expect(question.body).toContain('You join with this account');
    expect(await markupProblems(question.body)).toEqual([]);
    expect((await browser.post(link)).headers.location).toBe('/portal');
    expect(await usersOf(email)).toHaveLength(1);
    expect(await start(browser)).toBe(other.path);
    expect((await browser.get(link)).statusCode).toBe(404);
  });

  test('is joined with one’s account by giving its password to the invitation', async () => {
    const email = newEmail();
    await accept(await invite(store, email), OWN);
    const { browser, answer } = await accept(await invite(other, email), OWN);
    expect(answer.statusCode).toBe(303);
    expect(await usersOf(email)).toHaveLength(1);
    const account = await browser.get('/portal/account');
    expect(account.body).toContain('Fixture Store');
    expect(account.body).toContain('>Switch<');
  });

  test('shows nothing and takes nothing before one goes there, and the one before is left', async () => {
    const { email, browser } = await newUser(api, store.tenantId);
    await joinTenant(api, browser, { email, role: 'admin', tenantId: other.tenantId });
    const paths = ['', '/deliveries', '/conversations', '/endpoints', '/keys', '/audit'];
    const seen = async (office: string) => {
      const answers = paths.map((path) => browser.get(`${office}${path}`));
      return new Set((await Promise.all(answers)).map(({ statusCode }) => statusCode));
    };
    expect([await seen(other.path), await seen(store.path)]).toEqual([new Set([200]), new Set([404])]);
    const page = await browser.get(other.path);
    expect(page.body).toContain('<details class="switcher">');
    expect(await markupProblems(page.body)).toEqual([]);
    expect((await postSignedIn(browser, '/portal/tenant', { tenant: store.tenantId })).headers.location).toBe(
      '/portal',
    );
    expect([await seen(other.path), await seen(store.path)]).toEqual([new Set([404]), new Set([200])]);
    // Administrator there, plain member here.
    expect((await browser.get(`${store.path}/users`)).statusCode).toBe(403);
    const entries = await query(
      api.database,
      `select tenant_id from audit_log where actor = :email and action = 'user.signed_in' order by id`,
      { email },
    );
    expect(entries).toEqual(
      [store.tenantId, other.tenantId, store.tenantId].map((id) => ({ tenant_id: id })),
    );
  });

  test('that one does not belong to cannot be gone to', async () => {
    const { browser } = await newUser(api, store.tenantId, 'admin');
    for (const tenant of [other.tenantId, '', '0', 'x', '%00']) {
      expect((await postSignedIn(browser, '/portal/tenant', { tenant })).statusCode).toBe(404);
    }
    expect(await start(browser)).toBe(store.path);
  });

  test('is worked in by an operator with the rights there, and no others', async () => {
    const { email, browser } = await newUser(api, null);
    await joinTenant(api, browser, { email, role: 'member', tenantId: store.tenantId });
    expect((await browser.get('/portal/operator/users')).statusCode).toBe(403);
    expect((await browser.get(other.path)).statusCode).toBe(404);
    await postSignedIn(browser, '/portal/tenant', { tenant: '' });
    expect((await browser.get('/portal/operator/users')).statusCode).toBe(200);
  });
});

describe('a membership', () => {
  test('that is removed ends access at once, here only, and the last one ends the account', async () => {
    const { email, browser: here } = await newUser(api, store.tenantId);
    const there = openBrowser(api.app);
    await signInWith(there, email);
    await joinTenant(api, there, { email, role: 'member', tenantId: other.tenantId });
    const [id = ''] = await usersOf(email);
    const question = await store.admin.get(`${store.path}/users/${id}/remove`);
    expect(question.body).toContain('loses all access to Fixture Store');
    expect(await markupProblems(question.body)).toEqual([]);
    await postSignedIn(store.admin, `${store.path}/users/${id}/remove`);
    expect((await here.get('/portal/account')).statusCode).toBe(303);
    expect(await start(there)).toBe(other.path);
    expect((await there.get('/portal/account')).body).not.toContain('Fixture Store');
    expect((await postSignedIn(there, '/portal/tenant', { tenant: store.tenantId })).statusCode).toBe(404);
    await postSignedIn(other.admin, `${other.path}/users/${id}/remove`);
    expect((await there.get('/portal/account')).statusCode).toBe(303);
    expect((await signInWith(there, email)).statusCode).toBe(422);
    expect(await usersOf(email)).toEqual([]);
    const log = await store.admin.get(`${store.path}/audit?action=user.removed`);
    expect(log.body).toContain(`user ${email}`);
  });

  test('is not ended by a role or a lock elsewhere', async () => {
    const { email, browser } = await newUser(api, store.tenantId, 'admin');
    await joinTenant(api, browser, { email, role: 'admin', tenantId: other.tenantId });
    const [id = ''] = await usersOf(email);
    await postSignedIn(store.admin, `${store.path}/users/${id}/disable`);
    expect(await start(browser)).toBe(other.path);
    expect((await postSignedIn(browser, '/portal/tenant', { tenant: store.tenantId })).statusCode).toBe(404);
    expect(await start(browser)).toBe(other.path);
  });

  test('of a tenant tells nothing of the others of its user', async () => {
    const { email, browser } = await newUser(api, store.tenantId);
    await execute(api.database, 'update memberships set last_sign_in_at = null where user_id = :users', {
      users: (await usersOf(email))[0] ?? '',
    });
    await joinTenant(api, browser, { email, role: 'member', tenantId: other.tenantId });
    const row = new RegExp(`${email}[\\s\\S]*?</tr>`).exec(
      (await store.admin.get(`${store.path}/users`)).body,
    )?.[0];
    expect(row).toContain('never');
  });

  test('of the last administrator stays when two remove each other at the same time', async () => {
    const { tenantId, wabaId } = await freshTenant(api.database);
    const page = `/portal/w/${wabaId}/users`;
    const [one, two] = [await newUser(api, tenantId, 'admin'), await newUser(api, tenantId, 'admin')];
    for (const { browser } of [one, two]) await browser.get(page);
    await Promise.all([
      one.browser.post(`${page}/${two.id}/remove`),
      two.browser.post(`${page}/${one.id}/remove`),
    ]);
    expect([...(await usersOf(one.email)), ...(await usersOf(two.email))]).toHaveLength(1);
  });

  test('ends with its tenant, and so does an account that belongs nowhere then', async () => {
    const { userId } = await createTenant({ database: api.database, actor: SYSTEM }, 'Short-lived');
    const { email, browser } = await newUser(api, userId, 'admin');
    const { email: operator } = await newUser(api, null);
    expect((await browser.get('/portal')).statusCode).toBe(200);
    await execute(api.database, 'delete from tenants where id = :userId', { userId });
    expect((await browser.get('/portal')).headers.location).toContain('/portal/sign-in');
    await forgetUsersWithoutTenant(api.database, 100);
    expect(await usersOf(email)).toEqual([]);
    expect(await usersOf(operator)).toHaveLength(1);
  });
});

test('an operator removes an account everywhere, but neither himself nor the last of them', async () => {
  const { browser: operator, id: own } = await newUser(api, null);
  const { browser, email, id } = await newUser(api, store.tenantId, 'admin');
  await joinTenant(api, browser, { email, role: 'admin', tenantId: other.tenantId });
  const question = await operator.get(`/portal/operator/users/${id}/remove`);
  expect(question.body).toContain('Fixture Store');
  expect(await markupProblems(question.body)).toEqual([]);
  const done = await postSignedIn(operator, `/portal/operator/users/${id}/remove`);
  expect(done.headers.location).toBe('/portal/operator/users?done=removed');
  expect((await browser.get('/portal/account')).statusCode).toBe(303);
  expect((await postSignedIn(operator, `/portal/operator/users/${own}/remove`)).statusCode).toBe(422);
});

test('a password that opens two accounts of an address leads to the one used last, and says so', async () => {
  const email = newEmail();
  await accept(await invite(store, email), TAKEN);
  const { browser } = await accept(await invite(other, email), OWN);
  await browser.get('/portal/account');
  await browser.post('/portal/account/password', { current: OWN, password: TAKEN });
  const again = openBrowser(api.app);
  expect((await signInWith(again, email, TAKEN)).headers.location).toBe('/portal/account?done=several');
  expect((await again.get('/portal/account?done=several')).body).toContain('opens several accounts');
  expect(await start(again)).toBe(other.path);
});
