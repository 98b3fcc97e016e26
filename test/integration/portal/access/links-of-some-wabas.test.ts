import type { LightMyRequestResponse } from 'fastify';
import { beforeAll, expect, test } from 'vitest';
import { noteTokenRefused } from '../../../../src/features/accounts/access-tokens.ts';
import { CAPABILITIES } from '../../../../src/features/users/portal-link-store.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { databaseDigest } from '../../../support/database-digest.ts';
import { turn } from '../../alerts/alerts-fixtures.ts';
import { addAccountObjects } from '../../api/account-objects.ts';
import { apiOfFile, testConfig } from '../../api/api-harness.ts';
import { errorOf, fresh } from '../../api/provisioning/platform-client.ts';
import { filledIn, type PageRoute, pageRoutes, pathOf } from '../page-routes.ts';
import { openBrowser, type PortalBrowser } from '../portal-browser.ts';
import { PRODUCT, pathOfLink, type Shop, shopOf, visitBy } from './link-visits.ts';

/** Portal links that name WABAs: to their sessions, the other WABAs of the tenant are those of another one. */

const api = apiOfFile(async () => ({
  config: testConfig({ HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: PRODUCT }),
}));

const FRAMED = { 'sec-fetch-dest': 'iframe' };
const MISSING = '900000000000999';
const LEFT_OUT_NUMBER = '12025550177';
const ALL = { capabilities: [...CAPABILITIES] };

let shop: Shop;
let other: Shop;
/** A WABA of the shop that the links leave out. */
let leftOut: string;
let ids: Readonly<Record<string, string>>;
let routes: PageRoute[];

async function addWaba(to: Shop, displayPhoneNumber: string) {
  const { wabaId, number } = fresh();
  const phoneNumbers = [{ phoneNumberId: number, displayPhoneNumber }];
  const added = await to.program('PUT', `/tenants/${to.name}/wabas/${wabaId}`, { phoneNumbers });
  expect(added.status).toBe(201);
  return { wabaId, number };
}

/** A tenant with a second WABA that has everything. */
async function shopWithTwo(): Promise<{ shop: Shop; leftOut: string }> {
  const made = await shopOf(api);
  const { wabaId, number } = await addWaba(made, LEFT_OUT_NUMBER);
  await addAccountObjects(api.database, { wabaId, phoneNumberId: number });
  return { shop: made, leftOut: wabaId };
}

beforeAll(async () => {
  ({ shop, leftOut } = await shopWithTwo());
  other = await shopOf(api);
  const wabaId = leftOut;
  const of = async (table: string) => {
    const text = `select cast(id as text) as id from ${table} where waba_id = :wabaId order by 1 limit 1`;
    const [row] = await query<{ id: string }>(api.database, text, { wabaId });
    return row?.id ?? '';
  };
  ids = {
    endpoints: await of('webhook_endpoints'),
    deliveries: `dlv_${(await of('deliveries')).replaceAll('-', '')}`,
    replays: await of('replays'),
    broadcasts: await of('broadcasts'),
    conversations: await of('conversations'),
  };
  routes = pageRoutes(api.routes);
});

/** A page with the ids of what the WABA that is left out has, below any WABA. */
function at(wabaId: string, route: PageRoute): string {
  const section = /:wabaId\/([a-z-]+)/.exec(route.url)?.[1] ?? '';
  const id = ids[section] || '1';
  return pathOf(route, { wabaId, id, type: 'message', session: '1', deliveryId: ids.deliveries ?? '' });
}

/** What does not differ from one request to the next. */
function shownOf({ statusCode, headers, body }: LightMyRequestResponse, wabaId: string) {
  const text = body.replaceAll(String(headers['x-request-id']), 'ID').replaceAll(wabaId, ':wabaId');
  return { status: statusCode, location: headers.location, frame: headers['x-frame-options'], text };
}

const MODES: readonly [name: string, given: object, headers: Record<string, string>][] = [
  ['a tab', {}, {}],
  ['a frame', { embed: { origin: PRODUCT } }, FRAMED],
];

for (const [name, given, headers] of MODES) {
  test(`in ${name}, each page and form of a WABA that is left out is that of a foreign and of a missing one, and changes nothing`, async () => {
    const path = pathOfLink(await shop.link({ ...ALL, ...given, wabaIds: [shop.wabaId] }));
    const browser = openBrowser(api.app);
    await browser.get(path, headers);
    expect((await browser.post(path, {}, headers)).headers.location).toBe(shop.path);
    const before = await digest();
    const ofWaba = routes.filter(({ url, access }) => url.includes('/:wabaId') && access !== 'operator');
    expect(ofWaba.length).toBeGreaterThan(70);
    for (const route of ofWaba) {
      const asked = async (wabaId: string) => {
        const answer =
          route.method === 'GET'
            ? await browser.get(at(wabaId, route), headers)
            : await browser.post(at(wabaId, route), filledIn(route), headers);
        return { route: route.name, ...shownOf(answer, wabaId) };
      };
      const hidden = await asked(leftOut);
      expect([route.name, hidden.status]).toEqual([route.name, 404]);
      expect(hidden).toEqual(await asked(other.wabaId));
      expect(hidden).toEqual(await asked(MISSING));
    }
    expect(await digest()).toEqual(before);
  });
}

async function digest() {
  const { user_sessions: _, ...tables } = await databaseDigest(api.database);
  return tables;
}

test('nothing of the tenant that has no WABA in its path shows one that is left out: start, alerts, bell, audit log', async () => {
  const { shop, leftOut } = await shopWithTwo();
  const [limited, whole] = [
    await visitBy(api, shop, {
      ...ALL,
      wabaIds: [shop.wabaId],
      user: { externalId: 'u_1', email: 'one@store.example' },
    }),
    await visitBy(api, shop, { ...ALL, user: { externalId: 'u_2', email: 'two@store.example' } }),
  ];
  const pages = [
    '/portal',
    '/portal/alerts?state=all',
    '/portal/nowhere',
    `${shop.path}/audit`,
    `${shop.path}/audit/export`,
  ];
  const bodies = async (browser: PortalBrowser) => {
    const answers = [];
    for (const page of pages) {
      const { headers, body } = await browser.get(page);
      answers.push(headers.location === undefined ? body : (await browser.get(headers.location)).body);
    }
    return answers.join('\n');
  };
  const [shown, all] = [await bodies(limited), await bodies(whole)];
  for (const text of [leftOut, LEFT_OUT_NUMBER, 'two@store.example', 'user.portal_link_created']) {
    expect([text, all.includes(text), shown.includes(text)]).toEqual([text, true, false]);
  }
  await noteTokenRefused(api.database, leftOut, 'The token has ended.');
  await api.database.raw(
    `update wabas set token_refused_at = now() - interval '1 hour' where token_refused_at is not null`,
  );
  await turn(api.database);
  expect(await openAlerts(whole)).toBeGreaterThan(0);
  expect(await openAlerts(limited)).toBe(0);
  await limited.get('/portal/alerts');
  const [alert] = await query<{ id: string }>(
    api.database,
    'select id from alerts where waba_id = :leftOut',
    { leftOut },
  );
  for (const fields of [{}, { alert: alert?.id ?? '' }]) await limited.post('/portal/alerts/read', fields);
  expect(await query(api.database, 'select from alert_reads')).toEqual([]);
});

async function openAlerts(browser: PortalBrowser): Promise<number> {
  const { body } = await browser.get('/portal/alerts');
  return [...body.matchAll(/href="\/portal\/runbooks#/g)].length;
}

test('a later link of the person says anew which WABAs the session sees', async () => {
  const browser = await visitBy(api, shop, { wabaIds: [shop.wabaId] });
  expect((await browser.get(`/portal/w/${leftOut}`)).statusCode).toBe(404);
  await visitBy(api, shop, { wabaIds: [leftOut] }, browser);
  expect([
    (await browser.get(`/portal/w/${leftOut}`)).statusCode,
    (await browser.get(shop.path)).statusCode,
  ]).toEqual([200, 404]);
});

test('of several WABAs the person chooses one of the link, and comes to the page that was asked for; one is chosen already', async () => {
  const { shop, leftOut } = await shopWithTwo();
  const third = (await addWaba(shop, '12025550178')).wabaId;
  const opened = async (given: object) => {
    const path = pathOfLink(await shop.link({ page: 'deliveries', ...given }));
    const browser = openBrowser(api.app);
    await browser.get(path);
    return { browser, location: (await browser.post(path)).headers.location ?? '' };
  };
  expect((await opened({ wabaIds: [third] })).location).toBe(`/portal/w/${third}/deliveries`);
  expect((await opened({ wabaIds: [third], page: 'overview' })).location).toBe(`/portal/w/${third}`);
  for (const [wabaIds, shown] of [
    [
      [shop.wabaId, third],
      [shop.wabaId, third],
    ],
    [undefined, [shop.wabaId, leftOut, third]],
  ]) {
    const { browser, location } = await opened({ wabaIds });
    const { body } = await browser.get(location);
    expect(body).toContain('<h1>Choose a WABA</h1>');
    const links = [...body.matchAll(/href="(\/portal\/w\/[^"]*)"/g)].map(([, href]) => href);
    expect(links.sort()).toEqual(shown?.map((wabaId) => `/portal/w/${wabaId}/deliveries`).sort());
    expect((await browser.get(links[0] ?? '')).body).toContain('<h1>Deliveries</h1>');
  }
  const { browser } = await opened({});
  for (const page of ['../operator', 'users', '//evil.example']) {
    const { body } = await browser.get(`/portal?page=${encodeURIComponent(page)}`);
    expect(body).toContain(`href="${shop.path}"`);
    expect(body).not.toContain(page);
  }
});

test('a WABA of another tenant, and one that there is not, get no link, and tell nothing', async () => {
  const links = async () => await query(api.database, 'select from portal_links');
  const before = (await links()).length;
  for (const foreign of [other.wabaId, MISSING]) {
    for (const wabaIds of [[foreign], [shop.wabaId, foreign]]) {
      expect(errorOf(await shop.link({ wabaIds }))).toEqual([404, 'unknown_waba', null]);
    }
  }
  for (const wabaIds of [[], ['abc'], [shop.wabaId, shop.wabaId], shop.wabaId, null]) {
    expect([wabaIds, errorOf(await shop.link({ wabaIds })).slice(0, 2)]).toEqual([
      wabaIds,
      [400, 'invalid_parameter'],
    ]);
  }
  expect((await links()).length).toBe(before);
});
