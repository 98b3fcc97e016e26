import { expect, test } from 'vitest';
import { revokePlatformKey } from '../../../../src/features/keys/platform-keys.ts';
import { forgetOldPortalLinks } from '../../../../src/features/users/portal-link-store.ts';
import { forgetUsersWithoutTenant } from '../../../../src/features/users/user-store.ts';
import { OPERATOR_COMMAND } from '../../../../src/platform/audit/audit.ts';
import { execute, query, queryValue } from '../../../../src/platform/postgres/sql.ts';
import { apiOfFile, PUBLIC_URL, startTestApi, testConfig } from '../../api/api-harness.ts';
import {
  addPlatformKey,
  clientWith,
  errorOf,
  platformClient,
} from '../../api/provisioning/platform-client.ts';
import { newOffice, openBrowser } from '../portal-browser.ts';
import { PRODUCT, pathOfLink, shopOf, visitBy } from './link-visits.ts';

/** People of the operator's product open the portal by links. */

const api = apiOfFile(async () => ({
  config: testConfig({ HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: `${PRODUCT},https://desk.example` }),
}));

const GONE = 'This link cannot be used';
const OVER = 'The session is over';

test('a link opens the portal of its tenant once, and is in no row, and in no entry of the audit log', async () => {
  const shop = await shopOf(api);
  const made = await shop.link({ page: 'endpoints' });
  expect(made.body).toEqual({
    id: expect.stringMatching(/^ps_\d+$/),
    url: expect.stringMatching(new RegExp(`^${PUBLIC_URL}/portal/enter/[\\w-]{43}$`)),
    linkExpiresAt: expect.any(String),
    sessionSeconds: 3_600,
  });
  const inMs = Date.parse(made.body.linkExpiresAt) - Date.now();
  expect(inMs).toBeGreaterThan(200_000);
  expect(inMs).toBeLessThan(301_000);
  const path = pathOfLink(made);
  const browser = openBrowser(api.app);
  await browser.get(path);
  const opened = await browser.post(path);
  expect([opened.statusCode, opened.headers.location]).toEqual([303, `${shop.path}/endpoints`]);
  const page = await browser.get(`${shop.path}/endpoints`);
  expect(page.statusCode).toBe(200);
  expect(page.body).toContain('Asha');

  const again = openBrowser(api.app);
  const second = await again.get(path);
  expect([second.statusCode, second.body.includes(GONE)]).toEqual([410, true]);
  expect(second.body).toContain(`href="${PRODUCT}/portal"`);

  const secret = path.split('/').at(-1) ?? '';
  const rows = await query<{ text: string }>(
    api.database,
    `select l::text || encode(l.token_hash, 'base64') || encode(l.token_hash, 'escape') as text from portal_links l
     union all select a::text from audit_log a union all select s::text from user_sessions s`,
  );
  expect(rows.length).toBeGreaterThan(2);
  expect(rows.filter(({ text }) => text.includes(secret))).toEqual([]);
  const actions = await query<{ action: string }>(
    api.database,
    `select action from audit_log where target = 'user asha@store.example' and tenant_id = (select id from tenants where external_id = :name) order by id`,
    { name: shop.name },
  );
  expect(actions.map(({ action }) => action)).toEqual([
    'user.portal_link_created',
    'user.portal_session_opened',
  ]);
});

test('a preview of a link, however often it looks, uses nothing up', async () => {
  const shop = await shopOf(api);
  const path = pathOfLink(await shop.link());
  for (const method of ['GET', 'HEAD', 'GET'] as const) {
    const looked = await api.app.inject({ method, url: path, headers: { 'user-agent': 'WhatsApp/2.23 A' } });
    expect([
      looked.statusCode,
      looked.headers['set-cookie']?.toString().includes('__Host-heliograph='),
    ]).toEqual([200, false]);
  }
  const browser = openBrowser(api.app);
  expect((await browser.get(path)).body).toContain('Open the portal');
  expect((await browser.post(path)).statusCode).toBe(303);
});

test('of a hundred browsers with one link, one gets in', async () => {
  const shop = await shopOf(api);
  const path = pathOfLink(await shop.link());
  const browsers = Array.from({ length: 100 }, () => openBrowser(api.app));
  await Promise.all(browsers.map((browser) => browser.get(path)));
  const answers = await Promise.all(browsers.map((browser) => browser.post(path)));
  const statuses = answers.map(({ statusCode }) => statusCode).sort();
  expect(statuses).toEqual([303, ...Array(99).fill(410)]);
  expect(
    await queryValue(
      api.database,
      `select count(*)::integer from user_sessions s join portal_links l on l.id = s.portal_link_id
    join tenants t on t.id = l.tenant_id where t.external_id = :name`,
      { name: shop.name },
    ),
  ).toBe(1);
});

test('a link of another site’s form, or after five minutes, opens nothing', async () => {
  const shop = await shopOf(api);
  const path = pathOfLink(await shop.link());
  const browser = openBrowser(api.app);
  await browser.get(path);
  const foreign = await browser.post(
    path,
    {},
    { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
  );
  expect(foreign.statusCode).toBe(403);
  await execute(
    api.database,
    `update portal_links set link_expires_at = now() - interval '1 second' where tenant_id = (select id from tenants where external_id = :name)`,
    { name: shop.name },
  );
  const late = await browser.post(path);
  expect([late.statusCode, late.body.includes(GONE)]).toEqual([410, true]);
  expect(late.body).toContain(`href="${PRODUCT}/portal"`);
  const unknown = await browser.get(`/portal/enter/${'x'.repeat(43)}`);
  expect([unknown.statusCode, unknown.body.includes('crm.example')]).toEqual([410, false]);
});

test('the session ends from outside at once: by person, by id, all, with the tenant’s suspension and with the platform key', async () => {
  const shop = await shopOf(api);
  const isIn = async (browser: Awaited<ReturnType<typeof visitBy>>) => {
    const page = await browser.get(shop.path);
    if (page.statusCode === 200) return true;
    expect([page.statusCode, page.body.includes(OVER)]).toEqual([403, true]);
    expect(page.body).toContain(`href="${PRODUCT}/portal"`);
    return false;
  };
  const person = (externalId: string) => ({ user: { externalId, email: `${externalId}@store.example` } });
  const [first, second] = [await visitBy(api, shop, person('u_1')), await visitBy(api, shop, person('u_2'))];
  const unused = await shop.link(person('u_1'));
  expect((await shop.program('DELETE', `${shop.sessions}?user=u_1`)).body).toEqual({ ended: 2 });
  expect([await isIn(first), await isIn(second)]).toEqual([false, true]);
  expect((await openBrowser(api.app).get(pathOfLink(unused))).statusCode).toBe(410);

  const third = await shop.link(person('u_3'));
  const byId = openBrowser(api.app);
  await byId.get(pathOfLink(third));
  await byId.post(pathOfLink(third));
  expect((await shop.program('DELETE', `${shop.sessions}?id=${third.body.id}`)).body).toEqual({ ended: 1 });
  expect([await isIn(byId), await isIn(second)]).toEqual([false, true]);
  expect((await shop.program('DELETE', shop.sessions)).body).toEqual({ ended: 1 });
  expect(await isIn(second)).toBe(false);

  const fourth = await visitBy(api, shop, person('u_4'));
  await shop.program('PATCH', `/tenants/${shop.name}`, { state: 'suspended' });
  expect(await isIn(fourth)).toBe(false);
  expect(errorOf(await shop.link())).toEqual([403, 'tenant_suspended', null]);
  await shop.program('PATCH', `/tenants/${shop.name}`, { state: 'active' });

  const key = await addPlatformKey(api.database);
  const other = { ...shop, ...(await linkMaker(key.authorization, shop)) };
  const fifth = await visitBy(api, other, person('u_5'));
  expect(await isIn(fifth)).toBe(true);
  await revokePlatformKey({ database: api.database, actor: OPERATOR_COMMAND }, key.id);
  expect(await isIn(fifth)).toBe(false);
});

async function linkMaker(authorization: string, shop: Awaited<ReturnType<typeof shopOf>>) {
  const program = clientWith(api, authorization);
  const link: typeof shop.link = (given = {}) =>
    program('POST', shop.sessions, { role: 'admin', refreshUrl: `${PRODUCT}/portal`, ...given });
  return { program, link };
}

test('the session has its own lifetime, half an hour without use, and a sign-out with a way back', async () => {
  const shop = await shopOf(api);
  const browser = await visitBy(api, shop, { sessionSeconds: 900 });
  const times = async () =>
    await query<{ idle: number; all: number }>(
      api.database,
      `select extract(epoch from s.idle_until - now())::integer as idle, extract(epoch from s.expires_at - now())::integer as all
         from user_sessions s join portal_links l on l.id = s.portal_link_id join tenants t on t.id = l.tenant_id where t.external_id = :name`,
      { name: shop.name },
    );
  const [{ idle = 0, all = 0 } = {}] = await times();
  expect([idle > 1_700 && idle <= 1_800, all > 800 && all <= 900]).toEqual([true, true]);
  await execute(
    api.database,
    `update user_sessions set last_seen_at = now() - interval '5 minutes', idle_until = now() + interval '1 minute' where portal_link_id is not null`,
  );
  await browser.get(shop.path);
  expect((await times())[0]?.idle).toBeGreaterThan(1_700);
  await browser.post('/portal/sign-out');
  const page = await browser.get(shop.path);
  expect([page.statusCode, page.body.includes(OVER), page.body.includes(`${PRODUCT}/portal`)]).toEqual([
    403,
    true,
    true,
  ]);
});

test('ways back lead to the operator’s product only', async () => {
  const shop = await shopOf(api);
  const wrong = [
    'https://evil.example/',
    'https://crm.example.evil.example/',
    'https://crm.example@evil.example/',
    'https://user:secret@crm.example/',
    'http://crm.example/',
    'https://crm.example:8443/',
    'javascript:alert(1)',
    '//crm.example/',
    '',
  ];
  for (const url of wrong) {
    for (const name of ['returnUrl', 'refreshUrl']) {
      expect([url, errorOf(await shop.link({ [name]: url }))]).toEqual([url, [422, 'url_not_allowed', name]]);
    }
  }
  const fine = await shop.link({ returnUrl: 'https://desk.example/settings?tab=1', refreshUrl: undefined });
  expect(fine.status).toBe(201);
});

test('what no session may have is refused with the name of the member', async () => {
  const shop = await shopOf(api);
  const user = { externalId: 'u_9', email: 'u9@store.example' };
  const refused: [object, string][] = [
    [{ role: 'operator' }, 'role'],
    [{ capabilities: ['users'] }, 'capabilities.0'],
    [{ role: 'member', capabilities: ['manage_endpoints'] }, 'capabilities'],
    [{ sessionSeconds: 899 }, 'sessionSeconds'],
    [{ sessionSeconds: 43_201 }, 'sessionSeconds'],
    [{ page: '../operator' }, 'page'],
    [{ user: { ...user, externalId: 'a/b' } }, 'user.externalId'],
    [{ user: { ...user, email: 'no address' } }, 'user'],
  ];
  for (const [given, param] of refused) {
    const [status, code, named] = errorOf(await shop.link(given));
    expect([given, status, code]).toEqual([given, 400, 'invalid_parameter']);
    expect(String(named)).toContain(param.split('.')[0]);
  }
  expect(
    errorOf(await shop.program('POST', '/tenants/nobody/portal-sessions', { user, role: 'admin' })),
  ).toEqual([404, 'unknown_tenant', null]);
});

test('a person gets ten links a minute', async () => {
  const shop = await shopOf(api);
  const statuses = [];
  for (let i = 0; i < 11; i += 1) statuses.push((await shop.link()).status);
  expect(statuses).toEqual([...Array(10).fill(201), 429]);
  expect((await shop.link({ user: { externalId: 'u_18', email: 'b@store.example' } })).status).toBe(201);
});

test('people of two tenants with one name and address are two accounts, and neither is an account with that address', async () => {
  const office = await newOffice(api);
  const email = office.adminEmail;
  const [shop, other] = [await shopOf(api), await shopOf(api)];
  const one = await visitBy(api, shop, { user: { externalId: 'u_1', email } });
  expect((await one.get(other.path)).statusCode).toBe(404);
  expect((await one.get(office.path)).statusCode).toBe(404);
  expect(
    (await (await visitBy(api, other, { user: { externalId: 'u_1', email } })).get(shop.path)).statusCode,
  ).toBe(404);
  expect((await office.admin.get(shop.path)).statusCode).toBe(404);
  const accounts = await query(api.database, 'select from users where email = :email', { email });
  expect(accounts.length).toBe(3);
});

test('who is signed in with an account is asked, and a link’s session joins no tenant', async () => {
  const office = await newOffice(api);
  const shop = await shopOf(api);
  const path = pathOfLink(await shop.link());
  const asked = await office.admin.get(path);
  expect(asked.body).toContain(`You are signed in here as ${office.adminEmail}`);
  expect((await office.admin.get(office.path)).statusCode).toBe(200);
  await office.admin.get(path);
  expect((await office.admin.post(path)).statusCode).toBe(303);
  expect((await office.admin.get(office.path)).statusCode).toBe(404);
  expect((await office.admin.get(shop.path)).statusCode).toBe(200);

  const { inviteUser } = await import('../../../../src/features/users/invitations.ts');
  const authority = { actor: OPERATOR_COMMAND, tenantId: null, userId: null };
  const invitation = { email: 'asha@store.example', role: 'admin', tenantId: office.tenantId };
  const { path: inviting } = await inviteUser({ database: api.database }, authority, invitation);
  const page = await office.admin.get(inviting);
  expect(page.body).toContain('name="password"');
  await office.admin.post(inviting);
  expect(
    await query(
      api.database,
      `select from memberships m join user_identities i on i.user_id = m.user_id where i.issuer = 'platform'`,
    ),
  ).toEqual([]);
});

test('a change later than ten minutes wants a new link, which renews the session of an open form', async () => {
  const shop = await shopOf(api);
  const browser = await visitBy(api, shop);
  await browser.get(`${shop.path}/endpoints/new`);
  const token = browser.token();
  await execute(
    api.database,
    `update user_sessions set proven_at = now() - interval '11 minutes' where portal_link_id is not null`,
  );
  const form = { _csrf: token, url: 'https://receiver.example/hook' };
  const asked = await browser.post(`${shop.path}/endpoints`, form);
  expect([asked.statusCode, asked.body.includes('Confirm that it is you')]).toEqual([403, true]);
  expect(asked.body).toContain(`href="${PRODUCT}/portal" target="_blank"`);
  expect(asked.body).not.toContain('password');
  await visitBy(api, shop, {}, browser);
  const sent = await browser.post(`${shop.path}/endpoints`, form);
  expect([sent.statusCode, sent.body.includes('Confirm that it is you')]).not.toEqual([403, true]);
  expect(sent.statusCode).toBeLessThan(400);
});

test('where everybody needs a second factor, the product vouches for it or gets no link', async () => {
  const strict = await startTestApi(async () => ({
    config: testConfig({
      HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: PRODUCT,
      HELIOGRAPH_PORTAL_SECOND_FACTOR: 'all',
    }),
  }));
  const shop = await shopOf(strict, await platformClient(strict));
  expect(errorOf(await shop.link())).toEqual([400, 'invalid_parameter', 'user']);
  const user = { externalId: 'u_17', email: 'asha@store.example', mfa: true };
  const browser = await visitBy(strict, shop, { user });
  expect((await browser.get(shop.path)).statusCode).toBe(200);
});

test('links go an hour after their sessions, and people with their tenant', async () => {
  const shop = await shopOf(api);
  const browser = await visitBy(api, shop);
  const ofShop = `tenant_id = (select id from tenants where external_id = '${shop.name}')`;
  const links = async () => (await query(api.database, `select from portal_links where ${ofShop}`)).length;
  const back = async (text: string) =>
    await execute(
      api.database,
      `update portal_links set link_expires_at = now() - cast(:text as interval) where ${ofShop}`,
      { text },
    );
  await back('1 hour 50 minutes');
  await forgetOldPortalLinks(api.database, 1_000);
  expect(await links()).toBe(1);
  await forgetUsersWithoutTenant(api.database, 1_000);
  expect((await browser.get(shop.path)).statusCode).toBe(200);
  await back('2 hours 10 minutes');
  await forgetOldPortalLinks(api.database, 1_000);
  expect(await links()).toBe(0);
  expect((await browser.get(shop.path)).headers.location).toContain('/portal/sign-in');

  const accounts = async () =>
    (
      await query(
        api.database,
        `select from user_identities where subject like (select id || '/%' from tenants where id = :id)`,
        { id: tenantId },
      )
    ).length;
  const tenantId = await queryValue<string>(
    api.database,
    'select id from tenants where external_id = :name',
    { name: shop.name },
  );
  expect(await accounts()).toBe(1);
  await shop.program('DELETE', `/tenants/${shop.name}`, { confirm: shop.name });
  await forgetUsersWithoutTenant(api.database, 1_000);
  expect(await accounts()).toBe(0);
  expect(
    await query(
      api.database,
      `select from users u where email = 'asha@store.example' and not exists (select from user_identities i where i.user_id = u.id)`,
    ),
  ).toEqual([]);
});
