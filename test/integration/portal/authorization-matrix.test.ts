import type { LightMyRequestResponse } from 'fastify';
import { beforeAll, describe, expect, test } from 'vitest';
import { requestKey } from '../../../src/features/keys/key-requests.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { databaseDigest } from '../../support/database-digest.ts';
import { addAccountObjects, spreadIds } from '../api/account-objects.ts';
import { addKey, apiOfFile, NUMBER, OTHER_NUMBER, OTHER_WABA, testConfig, WABA } from '../api/api-harness.ts';
import { unknownIdLike } from '../api/route-matrix.ts';
import { filledIn, type PageRoute, pageRoutes, pathOf } from './page-routes.ts';
import { addUser, joinTenant, openBrowser, type PortalBrowser, tenantOf } from './portal-browser.ts';

/**
 * Every page and form that is registered × everybody who may come by. What is to be expected follows from what the
 * route declares, and the ids are those in the database, so a new page is covered by itself.
 */

const ROLES = ['nobody', 'member', 'admin', 'operator', 'other admin', 'admin of both'] as const;
type Role = (typeof ROLES)[number];

const MISSING_WABA = '900000000000999';

const UNREACHABLE = 'http://127.0.0.1:9';
const SETTINGS = {
  HELIOGRAPH_SANDBOX_CONTROL_URL: UNREACHABLE,
  HELIOGRAPH_SANDBOX_RECEIVER_URL: UNREACHABLE,
};
const api = apiOfFile(async () => ({ config: testConfig(SETTINGS) }));
let routes: PageRoute[];
let ids: Record<string, string>;
const browsers = new Map<Role, PortalBrowser>();

beforeAll(async () => {
  const { database } = api;
  await spreadIds(database);
  await addAccountObjects(database, { wabaId: OTHER_WABA, phoneNumberId: OTHER_NUMBER });
  await addAccountObjects(database, { wabaId: WABA, phoneNumberId: NUMBER });
  await addKey(database, WABA);
  const tenantId = await tenantOf(database, WABA);
  const otherTenantId = await tenantOf(database, OTHER_WABA);
  browsers.set('nobody', openBrowser(api.app));
  browsers.set('member', await addUser(api, { email: 'member@store.example', role: 'member', tenantId }));
  browsers.set('admin', await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId }));
  browsers.set(
    'operator',
    await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null }),
  );
  const other = { email: 'admin@other.example', role: 'admin', tenantId: otherTenantId };
  browsers.set('other admin', await addUser(api, other));
  // Belongs to both tenants, and is in the other one at present.
  const both = await addUser(api, { email: 'both@store.example', role: 'admin', tenantId });
  await joinTenant(api, both, { ...other, email: 'both@store.example' });
  browsers.set('admin of both', both);
  // The tokens of forms are taken from the page seen last.
  for (const [role, browser] of browsers)
    await browser.get(`/portal/${role === 'nobody' ? 'sign-in' : 'account'}`);
  ids = await idsOf(database, tenantId);
  routes = pageRoutes(api.routes);
});

/** One object of each kind of the first tenant, by kind, in the form in which paths name it. */
async function idsOf(database: Database, tenantId: string): Promise<Record<string, string>> {
  const [user] = await query<{ id: string; email: string }>(
    database,
    'select id, email from users u join memberships m on m.user_id = u.id where tenant_id = :tenantId order by id limit 1',
    { tenantId },
  );
  const wanted = { purpose: 'erp', scopes: ['read'], validDays: 90, replacesKeyId: null, overlapHours: null };
  const requester = { id: user?.id ?? '', name: user?.email ?? '' };
  const request = await requestKey({ database, actor: SYSTEM }, WABA, requester, wanted as never);
  const of = async (table: string, column = 'id', condition = `waba_id = '${WABA}'`) => {
    const rows = await query<{ id: string }>(
      database,
      `select cast(${column} as text) as id from ${table} where ${condition} order by 1 limit 1`,
    );
    return rows[0]?.id ?? '';
  };
  const sessionOf = `user_id in (select user_id from memberships where tenant_id = ${tenantId})`;
  const hex = (uuid: string) => uuid.replaceAll('-', '');
  return {
    endpoint: await of('webhook_endpoints'),
    delivery: `dlv_${hex(await of('deliveries'))}`,
    event: `evt_${hex(await of('events'))}`,
    replay: await of('replays'),
    broadcast: await of('broadcasts'),
    erasure: await of('erasures'),
    conversation: await of('conversations'),
    message: await of('messages'),
    key: await of('api_keys'),
    request: request.id,
    user: user?.id ?? '',
    session: await of('user_sessions', 'id', sessionOf),
  };
}

function browserOf(role: Role): PortalBrowser {
  const browser = browsers.get(role);
  if (browser === undefined) throw new Error(`nobody is signed in as ${role}`);
  return browser;
}

type Answer = { status: number; body: string; location: string | undefined };

/** What does not differ from one request to the next. */
function answerOf(response: LightMyRequestResponse): Answer {
  const { statusCode: status, body, headers } = response;
  return { status, body: body.replaceAll(String(headers['x-request-id']), 'ID'), location: headers.location };
}

/** Opens a page, or sends its form filled in and with the right token. */
async function ask(role: Role, route: PageRoute, params: Readonly<Record<string, string>>): Promise<Answer> {
  const browser = browserOf(role);
  const path = pathOf(route, params);
  if (route.method === 'GET') return answerOf(await browser.get(path));
  return answerOf(await browser.post(path, filledIn(route)));
}

/** All tables; of sessions only how many there are, as their use is noted. */
async function digest(): Promise<Record<string, string>> {
  const all = await databaseDigest(api.database);
  return { ...all, user_sessions: all.user_sessions?.split(' ')[0] ?? '' };
}

/** An administrator of another tenant than that of WABA, or of that too, who has not gone there. */
function isElsewhere(role: Role): boolean {
  return role === 'other admin' || role === 'admin of both';
}

/** What a route answers to somebody: a refusal, or null where the page decides itself. */
function expected({ url, access }: PageRoute, role: Role): 'sign-in' | 403 | 404 | null {
  if (access === 'open') return null;
  if (role === 'nobody') return 'sign-in';
  if (access === 'signedIn' || role === 'operator') return null;
  if (url.includes(':wabaId') && isElsewhere(role)) return 404;
  if (access === 'operator' || (access === 'admin' && role === 'member')) return 403;
  return null;
}

/** The sandbox does not run here. */
function isAway({ url }: PageRoute, { status }: Pick<Answer, 'status'>): boolean {
  return url.startsWith('/portal/sandbox') && status >= 502;
}

const TITLES = { 403: 'Not allowed', 404: 'Not found' };

describe('every page and form', () => {
  test('says whom it is for', () => {
    expect(routes.length).toBeGreaterThan(70);
    expect(routes.filter(({ access }) => access === undefined)).toEqual([]);
    const ofMembers = routes.filter(({ method, access }) => method === 'POST' && access === 'member');
    expect(ofMembers.filter(({ isSearch }) => !isSearch)).toEqual([]);
  });

  test('that says it only searches changes nothing', async () => {
    const searches = routes.filter(({ isSearch }) => isSearch);
    expect(searches.length).toBeGreaterThan(2);
    const before = await digest();
    for (const route of searches) {
      // The audit log has what operators see of tenants.
      const role = route.access === 'member' ? 'member' : 'operator';
      const { status } = await ask(role, route, { wabaId: WABA, id: ids.endpoint ?? '' });
      // A filter is too long for an address: its form shows the result itself.
      const found = route.url.endsWith('/filter') ? 200 : 303;
      expect([route.name, status]).toEqual([route.name, found]);
    }
    expect(await digest()).toEqual(before);
  });

  test('is refused to everybody whom it is not for, and nothing changes', async () => {
    const before = await digest();
    let refused = 0;
    for (const route of routes) {
      for (const role of ROLES) {
        const wanted = expected(route, role);
        if (wanted === null) continue;
        refused += 1;
        const { status, body, location } = await ask(role, route, { wabaId: WABA, ...ids, id: '1' });
        const got = status === 303 ? location?.split('?')[0] : status;
        expect([role, route.name, got]).toEqual([
          role,
          route.name,
          wanted === 'sign-in' ? '/portal/sign-in' : wanted,
        ]);
        // What one may go to is named at the top of each page.
        const page = body.replace(/<details class="switcher">[\s\S]*?<\/details>/, '');
        const isOwn = role === 'member' || role === 'admin';
        const bare = isOwn ? page.replace(/<a class="waba"[\s\S]*?<\/a>/, '') : page;
        expect(bare).not.toContain('Fixture Store');
        if (wanted !== 'sign-in') expect(body).toContain(`<title>${TITLES[wanted]}`);
      }
    }
    expect(refused).toBeGreaterThan(150);
    expect(await digest()).toEqual(before);
  });

  test('of a WABA answers another tenant as for a WABA that there is not', async () => {
    const ofWabas = routes.filter(({ url }) => url.includes(':wabaId'));
    expect(ofWabas.length).toBeGreaterThan(50);
    for (const route of ofWabas) {
      for (const role of ['other admin', 'admin of both'] as const) {
        const foreign = await ask(role, route, { wabaId: WABA, id: ids.endpoint ?? '' });
        const missing = await ask(role, route, { wabaId: MISSING_WABA, id: ids.endpoint ?? '' });
        expect([role, route.name, foreign]).toEqual([role, route.name, missing]);
        expect(foreign.status).toBe(404);
      }
    }
  });

  test('shows and touches no object of another tenant under one’s own WABA', {
    timeout: 480_000,
  }, async () => {
    const withIds = routes.filter(({ url, access }) => /:(?!wabaId)/.test(url) && access !== 'operator');
    expect(withIds.length).toBeGreaterThan(25);
    expect(Object.values(ids)).not.toContain('');
    const before = await digest();
    for (const route of withIds) {
      for (const [kind, id] of Object.entries(ids)) {
        const paramsOf = (one: string) => ({
          wabaId: OTHER_WABA,
          id: one,
          deliveryId: one,
          token: one,
          type: one,
        });
        const unknown = unknownIdLike(id);
        const foreign = await ask('other admin', route, paramsOf(id));
        const missing = await ask('other admin', route, paramsOf(unknown));
        const where = `${route.name} with the ${kind} of another tenant`;
        expect([where, { ...missing, body: missing.body.replaceAll(unknown, id) }]).toEqual([where, foreign]);
        expect([where, foreign.status]).not.toEqual([where, 200]);
        expect([where, foreign.status < 500 || isAway(route, foreign)]).toEqual([where, true]);
      }
    }
    expect(await digest()).toEqual(before);
  });

  test('lets in whom it is for, and breaks for nobody', async () => {
    const ended = ['POST /portal/sign-out'];
    for (const role of ROLES) {
      for (const route of routes) {
        if (expected(route, role) !== null || ended.includes(route.name)) continue;
        const wabaId = isElsewhere(role) ? OTHER_WABA : WABA;
        const { status, body } = await ask(role, route, { wabaId, id: '999999' });
        const where = `${role}: ${route.name}`;
        const away = isAway(route, { status });
        expect([where, status < 500 || away]).toEqual([where, true]);
        expect([
          where,
          /<title>(Not allowed|Form refused)/.test(body) && route.access !== 'signedIn',
        ]).toEqual([where, false]);
        const isPage = route.method === 'GET' && route.access !== 'open' && !/:(?!wabaId)/.test(route.url);
        if (isPage && !away) expect([where, [200, 303].includes(status)]).toEqual([where, true]);
      }
    }
  });
});

const FOREIGN: [string, Record<string, string>, Record<string, string | undefined>][] = [
  ['without a token', { _csrf: '' }, {}],
  ['with a wrong token', { _csrf: 'a'.repeat(43) }, {}],
  ['from another site', {}, { 'sec-fetch-site': 'cross-site' }],
  ['from a foreign origin', {}, { origin: 'https://evil.example', 'sec-fetch-site': undefined }],
  ['from the origin "null"', {}, { origin: 'null', 'sec-fetch-site': undefined }],
  ['from nowhere', {}, { origin: undefined, 'sec-fetch-site': undefined }],
];

describe('every form that is sent', () => {
  test.each(FOREIGN)('%s is refused and changes nothing', async (_name, fields, headers) => {
    const forms = routes.filter(({ method }) => method === 'POST');
    expect(forms.length).toBeGreaterThan(35);
    const operator = browserOf('operator');
    await operator.get('/portal/account');
    const before = await digest();
    for (const route of forms) {
      const id = route.url.includes('/endpoints/') ? ids.endpoint : ids.request;
      const path = pathOf(route, { wabaId: WABA, id: id ?? '' });
      const answer = await operator.post(path, { ...filledIn(route), ...fields }, headers);
      expect([route.name, answer.statusCode]).toEqual([route.name, 403]);
      expect(answer.body).toContain('<title>Form refused');
    }
    expect(await digest()).toEqual(before);
  });

  test('with the token of somebody else is refused', async () => {
    await browserOf('admin').get('/portal/account');
    const stolen = browserOf('admin').token();
    const path = '/portal/operator/tenants';
    const answer = await browserOf('operator').post(path, { name: 'Store', _csrf: stolen });
    expect(answer.statusCode).toBe(403);
  });
});
