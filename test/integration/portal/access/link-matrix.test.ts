import { beforeAll, expect, test } from 'vitest';
import { mayUse } from '../../../../src/api/portal/access/link-access.ts';
import { CAPABILITIES, type Capability } from '../../../../src/features/users/portal-link-store.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { databaseDigest } from '../../../support/database-digest.ts';
import { addAccountObjects } from '../../api/account-objects.ts';
import { apiOfFile, testConfig } from '../../api/api-harness.ts';
import { filledIn, type PageRoute, pageRoutes, pathOf } from '../page-routes.ts';
import type { PortalBrowser } from '../portal-browser.ts';
import { PRODUCT, type Shop, shopOf, visitBy } from './link-visits.ts';

/** Every page and form of the portal × sessions of portal links with one capability each, and with all. */

const api = apiOfFile(async () => ({
  config: testConfig({
    HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: PRODUCT,
    HELIOGRAPH_SANDBOX_CONTROL_URL: 'http://127.0.0.1:9',
    HELIOGRAPH_SANDBOX_RECEIVER_URL: 'http://127.0.0.1:9',
  }),
}));

let shop: Shop;
let other: Shop;
let routes: PageRoute[];
let ids: Readonly<Record<string, string>>;
const browsers = new Map<string, PortalBrowser>();
const grants = new Map<string, Capability[]>();

beforeAll(async () => {
  shop = await shopOf(api);
  other = await shopOf(api);
  await addAccountObjects(api.database, { wabaId: shop.wabaId, phoneNumberId: shop.number });
  for (const [name, capabilities] of [
    ...CAPABILITIES.map((one) => [one, [one]] as const),
    ['all', [...CAPABILITIES]] as const,
  ]) {
    const granted = [...new Set<Capability>(['view', ...capabilities])];
    grants.set(name, granted);
    browsers.set(
      name,
      await visitBy(api, shop, { capabilities, user: { externalId: name, email: `${name}@store.example` } }),
    );
  }
  routes = pageRoutes(api.routes);
  const of = async (table: string) => {
    const [row] = await query<{ id: string }>(
      api.database,
      `select cast(id as text) as id from ${table} where waba_id = '${shop.wabaId}' order by 1 limit 1`,
    );
    return row?.id ?? '';
  };
  ids = {
    endpoints: await of('webhook_endpoints'),
    deliveries: `dlv_${(await of('deliveries')).replaceAll('-', '')}`,
    replays: await of('replays'),
    broadcasts: await of('broadcasts'),
    conversations: await of('conversations'),
    keys: await of('api_keys'),
  };
});

/** A route with the ids of the shop's own objects, as far as it has some. */
function own(route: PageRoute, wabaId = shop.wabaId): string {
  const section = /:wabaId\/([a-z-]+)/.exec(route.url)?.[1] ?? '';
  return pathOf(route, {
    wabaId,
    id: ids[section] || '1',
    type: 'message',
    session: '1',
    deliveryId: ids.deliveries ?? '',
  });
}

const closed = (route: PageRoute, capabilities: Capability[]) =>
  route.access === 'operator' || !mayUse({ capabilities }, route.method, route.url);

test('no session of a link opens what its capabilities do not name, and nothing changes', async () => {
  const { user_sessions: _, ...before } = await databaseDigest(api.database);
  let refused = 0;
  for (const [name, browser] of browsers) {
    await browser.get(shop.path);
    for (const route of routes.filter(({ access }) => access !== 'open')) {
      if (!closed(route, grants.get(name) ?? [])) continue;
      const path = own(route);
      const answer =
        route.method === 'GET' ? await browser.get(path) : await browser.post(path, filledIn(route));
      expect([name, route.name, answer.statusCode]).toEqual([name, route.name, 403]);
      expect(answer.body).toContain('<title>Not allowed');
      refused += 1;
    }
  }
  expect(refused).toBeGreaterThan(500);
  const { user_sessions: __, ...after } = await databaseDigest(api.database);
  expect(after).toEqual(before);
});

test('a WABA of another tenant is for each of them what one is that does not exist', async () => {
  for (const [, browser] of browsers) {
    for (const route of routes.filter(
      ({ url, method }) => url.includes('/portal/w/:wabaId') && method === 'GET',
    )) {
      const [foreign, missing] = [
        await browser.get(own(route, other.wabaId)),
        await browser.get(own(route, '900000000000999')),
      ];
      expect([route.name, foreign.statusCode, missing.statusCode]).toEqual([route.name, 404, 404]);
    }
  }
});

test('users, erasures, policies, accounts, other tenants and operators’ pages are for no link', () => {
  const never = routes.filter((route) => route.access !== 'open' && closed(route, [...CAPABILITIES]));
  const sections = new Set(
    never.map(({ url }) => url.replace('/portal/w/:wabaId/', '').split('/').slice(0, 3).join('/')),
  );
  expect([...sections]).toEqual(
    expect.arrayContaining([
      'users',
      'erasures',
      'data',
      '/portal/account',
      '/portal/tenant',
      '/portal/operator',
    ]),
  );
});

test('pages of a session have no form and no link that it may not use', async () => {
  const wrong = new Set<string>();
  let pages = 0;
  for (const [name, browser] of browsers) {
    const capabilities = grants.get(name) ?? [];
    for (const route of routes.filter(({ method, access }) => method === 'GET' && access !== 'open')) {
      if (closed(route, capabilities)) continue;
      const { body, statusCode, headers } = await browser.get(own(route));
      if (statusCode !== 200 || !String(headers['content-type']).startsWith('text/html')) continue;
      pages += 1;
      for (const { verb, path } of waysIn(body)) {
        if (path.startsWith('/portal/assets/') || mayUse({ capabilities }, verb, path)) continue;
        wrong.add(`${name}: ${route.name} has ${verb} ${path.replace(shop.wabaId, ':wabaId')}`);
      }
    }
  }
  expect(pages).toBeGreaterThan(100);
  expect([...wrong]).toEqual([]);
});

function waysIn(body: string): { verb: string; path: string }[] {
  const links = [...body.matchAll(/<a [^>]*href="(\/portal[^"]*)"/g)].map(([, path = '']) => ({
    verb: 'GET',
    path,
  }));
  const forms = [...body.matchAll(/<(form[^>]*) action="(\/portal[^"]*)"/g)].map(
    ([, tag = '', path = '']) => ({
      verb: tag.includes('method="post"') ? 'POST' : 'GET',
      path,
    }),
  );
  const buttons = [...body.matchAll(/formaction="(\/portal[^"]*)"/g)].map(([, path = '']) => ({
    verb: 'POST',
    path,
  }));
  return [...links, ...forms, ...buttons].map(({ verb, path }) => ({
    verb,
    path: path.replaceAll('&amp;', '&'),
  }));
}

test('bodies of events are shown with view_events alone', async () => {
  const path = `${shop.path}/deliveries/${ids.deliveries}`;
  const [plain, events] = [
    await browsers.get('view')?.get(path),
    await browsers.get('view_events')?.get(path),
  ];
  expect([plain?.statusCode, events?.statusCode]).toEqual([200, 200]);
  expect(events?.body).toContain('<h2>Body</h2>');
  expect(plain?.body).not.toContain('<h2>Body</h2>');
  expect(plain?.body).not.toContain('As curl');
});
