import { beforeEach, describe, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
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
  PASSWORD,
  type PortalBrowser,
  postSignedIn,
  signInWith,
} from '../portal-browser.ts';

const BY_LINK = 'set through the link';

const api = apiOfFile();
let store: Office;
let otherTenantId: string;
let operator: PortalBrowser;
let users: string;

beforeEach(async () => {
  store = await newOffice(api);
  ({ tenantId: otherTenantId } = await freshTenant(api.database));
  ({ browser: operator } = await newUser(api, null));
  users = `${store.path}/users`;
});

const newOwner = () => newUser(api, store.tenantId, 'admin');

/** The link that somebody makes for somebody else, and what the page answered. */
const makeLink = async (maker: PortalBrowser, id: string) => {
  const page = maker === operator ? '/portal/operator/users' : users;
  return await postSignedIn(maker, `${page}/${id}/password-link`);
};

const use = async (link: string, password = BY_LINK) => {
  const browser = openBrowser(api.app);
  await browser.get(link);
  return { browser, answer: await browser.post(link, { password }) };
};

describe('a link for a new password that another made', () => {
  test('signs nobody in, ends all sessions, and says who made it on every page, also after its holder has changed it', async () => {
    const { email, browser, id } = await newOwner();
    const { browser: user, answer } = await use(linkIn(await makeLink(store.admin, id)));
    expect(answer.headers.location).toBe('/portal/sign-in?done=password-changed');
    expect((await user.get('/portal/account')).statusCode).toBe(303);
    expect((await browser.get('/portal/account')).statusCode).toBe(303);
    await signInWith(user, email, BY_LINK);
    for (const path of ['/portal/account', store.path, `${store.path}/keys`]) {
      const page = await user.get(path);
      expect(page.body).toContain(`set through a link made by ${store.adminEmail} on`);
      expect(await markupProblems(page.body)).toEqual([]);
    }
    const change = { current: BY_LINK, password: 'my own again, at last' };
    expect((await user.post('/portal/account/password', change)).statusCode).toBe(303);
    expect((await user.get('/portal/account')).body).toContain(
      `set through a link made by ${store.adminEmail} on`,
    );
  });

  test('works for a day, as it opens an account that there is; an invitation for seven', async () => {
    const { id } = await newOwner();
    await makeLink(store.admin, id);
    await postSignedIn(store.admin, `${users}/invite`, { email: 'week@store.example', role: 'member' });
    const [days] = await query(
      api.database,
      `select array_agg(distinct round(extract(epoch from expires_at - created_at) / 86400)) filter (where user_id is null) as "invited",
              array_agg(distinct round(extract(epoch from expires_at - created_at) / 86400)) filter (where user_id is not null) as "links"
         from invitations where tenant_id = :tenantId`,
      { tenantId: store.tenantId },
    );
    expect(days).toEqual({ invited: [7], links: [1] });
  });

  test('is named in what is done in the sessions that its password began, and by whom it was made', async () => {
    const { email, id } = await newOwner();
    const { browser: maker } = await use(linkIn(await makeLink(store.admin, id)));
    await signInWith(maker, email, BY_LINK);
    const invited = `invited-by-${id}@store.example`;
    await postSignedIn(maker, `${users}/invite`, { email: invited, role: 'member' });
    // A password of his own does not wash the session clean.
    await postSignedIn(maker, '/portal/account/password', {
      current: BY_LINK,
      password: 'another one of the maker',
    });
    await postSignedIn(maker, `${users}/invite`, { email: invited, role: 'admin' });
    const entries = await query<{ action: string; actor: string; detail: Record<string, string> }>(
      api.database,
      `select action, actor, detail from audit_log where target in (:email, :invited) and id >
         (select min(id) from audit_log where action = 'user.password_link_made' and target = :email) order by id`,
      { email: `user ${email}`, invited: `user ${invited}` },
    );
    const by = store.adminEmail;
    expect(entries).toMatchObject([
      { action: 'user.password_changed', actor: 'password link', detail: { linkMadeBy: by } },
      { action: 'user.signed_in', actor: email, detail: { passwordLinkBy: by } },
      { action: 'user.invited', actor: email, detail: { passwordLinkBy: by } },
      { action: 'user.password_changed', actor: email, detail: { passwordLinkBy: by } },
      { action: 'user.invited', actor: email, detail: { passwordLinkBy: by } },
    ]);
    const log = await store.admin.get(`${store.path}/audit`);
    expect(log.body).toContain(`passwordLinkBy: ${by}`);
  });

  test('is for operators to make where the account opens another tenant too', async () => {
    const { email, browser, id } = await newOwner();
    const open = linkIn(await makeLink(store.admin, id));
    expect((await openBrowser(api.app).get(open)).statusCode).toBe(200);
    await joinTenant(api, browser, { email, role: 'member', tenantId: otherTenantId });
    expect((await openBrowser(api.app).get(open)).statusCode).toBe(404);
    const refused = await makeLink(store.admin, id);
    expect(refused.statusCode).toBe(422);
    expect(linkIn(refused)).toBe('');
    expect(linkIn(await makeLink(operator, id))).not.toBe('');
  });

  test('is for operators to make where the account is an operator’s', async () => {
    const { email, browser, id } = await newOwner();
    await joinTenant(api, browser, { email, role: 'operator', tenantId: null });
    expect((await makeLink(store.admin, id)).statusCode).toBe(422);
  });

  test('takes no further tenant along: its maker must not come there with the owner', async () => {
    const { email, id } = await newOwner();
    const { browser } = await use(linkIn(await makeLink(store.admin, id)));
    await signInWith(browser, email, BY_LINK);
    const other = { email, role: 'admin', tenantId: otherTenantId };
    const refused = await joinTenant(api, browser, other);
    expect(refused.statusCode).toBe(422);
    expect(refused.body).toContain(`a link made by ${store.adminEmail}`);
    await postSignedIn(browser, '/portal/account/password', { current: BY_LINK, password: PASSWORD });
    expect((await joinTenant(api, browser, other)).statusCode).toBe(422);
    await postSignedIn(operator, `/portal/operator/users/${id}/confirm-password`);
    await signInWith(browser, email, PASSWORD);
    expect((await joinTenant(api, browser, other)).statusCode).toBe(303);
  });
});
