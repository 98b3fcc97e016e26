import { fastify } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PAGES } from '../../../../src/api/portal/access/page-access.ts';
import { requirePortalAccess } from '../../../../src/api/portal/access/portal-access.ts';
import { viewerOf, wabaOf } from '../../../../src/api/portal/access/viewer.ts';
import type { PortalApp, PortalContext } from '../../../../src/api/portal/portal-app.ts';
import { shareConnections } from '../../../../src/api/shares/connection-shares.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { apiOfFile, OTHER_WABA, PUBLIC_URL, WABA } from '../../api/api-harness.ts';
import { addUser, openBrowser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

const api = apiOfFile();
let probe: PortalApp;
const browsers = new Map<string, PortalBrowser>();

async function makeProbe(addPages: (pages: PortalApp) => void): Promise<PortalApp> {
  const app = fastify() as unknown as PortalApp;
  const config = loadConfig(testSettings(api.databaseUrl, {}));
  await app.register(async (pages: PortalApp) => {
    const { database } = api;
    const tools = { database, lookupDatabase: database, shares: shareConnections(database, 2) };
    const context = { ...tools, config, publicUrl: PUBLIC_URL } as unknown as PortalContext;
    await requirePortalAccess(pages, context);
    addPages(pages);
  });
  await app.ready();
  return app;
}

function addProbes(pages: PortalApp): void {
  pages.get('/portal/probe/open', { config: PAGES.open }, async () => 'seen');
  pages.get(
    '/portal/account/probe',
    { config: PAGES.signedIn },
    async (request) => `seen by ${viewerOf(request).email}`,
  );
  pages.get(
    '/portal/w/:wabaId/users/probe',
    { config: PAGES.member },
    async (request) => `seen ${wabaOf(request).businessName}`,
  );
  pages.get('/portal/w/:wabaId/users/admin', { config: PAGES.admin }, async () => 'seen');
  pages.post('/portal/w/:wabaId/users/admin', { config: PAGES.admin }, async () => 'changed');
  pages.get('/portal/operator/probe', { config: PAGES.operator }, async () => 'seen');
  pages.get(
    '/portal/operator/wabas/:wabaId',
    { config: PAGES.operator },
    async (request) => wabaOf(request).tenantId,
  );
  pages.get('/portal/probe/broken', { config: PAGES.open }, async () => {
    throw new Error('connect ECONNREFUSED secret-host:5432 password=hunter2');
  });
}

beforeAll(async () => {
  probe = await makeProbe(addProbes);
  const { app, database } = api;
  const users = [
    ['operator', 'operator', null],
    ['admin', 'admin', await tenantOf(database, WABA)],
    ['member', 'member', await tenantOf(database, WABA)],
    ['other admin', 'admin', await tenantOf(database, OTHER_WABA)],
    ['other member', 'member', await tenantOf(database, OTHER_WABA)],
  ] as const;
  for (const [index, [name, role, tenantId]] of users.entries()) {
    const signedIn = await addUser(
      { app, database },
      { email: `user${index}@store.example`, role, tenantId },
    );
    const browser = openBrowser(probe);
    for (const cookie of signedIn.cookies) browser.cookies.set(...cookie);
    browsers.set(name, browser);
  }
  browsers.set('nobody', openBrowser(probe));
});
afterAll(() => probe.close());

const OWN = `/portal/w/${WABA}`;
const ROLES = ['operator', 'admin', 'member', 'other admin', 'other member', 'nobody'];

/** What each of ROLES is answered. */
const MATRIX: [string, number[]][] = [
  ['/portal/probe/open', [200, 200, 200, 200, 200, 200]],
  ['/portal/account/probe', [200, 200, 200, 200, 200, 303]],
  [`${OWN}/users/probe`, [200, 200, 200, 404, 404, 303]],
  [`${OWN}/users/admin`, [200, 200, 403, 404, 404, 303]],
  ['/portal/operator/probe', [200, 403, 403, 403, 403, 303]],
  [`/portal/operator/wabas/${WABA}`, [200, 403, 403, 404, 404, 303]],
  ['/portal/w/999/users/probe', [404, 404, 404, 404, 404, 303]],
  ['/portal/w/x/users/admin', [404, 404, 404, 404, 404, 303]],
  ['/portal/w/%00/users/admin', [404, 404, 404, 404, 404, 303]],
  [`/portal/w/${'9'.repeat(65)}/users/admin`, [404, 404, 404, 404, 404, 303]],
  ['/portal/nothing', [404, 404, 404, 404, 404, 404]],
];

describe('a page', () => {
  test.each(MATRIX)('%s is answered to those whom it is for', async (path, statuses) => {
    const answers: (number | undefined)[] = [];
    for (const role of ROLES) answers.push((await browsers.get(role)?.get(path))?.statusCode);
    expect(Object.fromEntries(ROLES.map((role, at) => [role, answers[at]]))).toEqual(
      Object.fromEntries(ROLES.map((role, at) => [role, statuses[at]])),
    );
  });

  test('of another tenant’s WABA is byte for byte one that does not exist', async () => {
    const browser = browsers.get('other admin');
    const foreign = await browser?.get(`${OWN}/users/admin`);
    const missing = await browser?.get('/portal/w/123456789/users/admin');
    expect(foreign?.body).toBe(missing?.body);
    expect(foreign?.body).not.toContain('Fixture Store');
  });

  test('leads nobody to the sign-in and back, with its query', async () => {
    const answer = await browsers.get('nobody')?.get(`${OWN}/users/probe?state=failed`);
    expect(answer?.headers.location).toBe(
      `/portal/sign-in?next=${encodeURIComponent(`${OWN}/users/probe?state=failed`)}`,
    );
  });

  test('that breaks tells the request and keeps its cause to itself', async () => {
    const answer = await browsers.get('nobody')?.get('/portal/probe/broken');
    expect(answer?.statusCode).toBe(500);
    expect(answer?.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(answer?.body).toContain('Something went wrong');
    expect(answer?.body).not.toMatch(/hunter2|secret-host|ECONNREFUSED/);
  });
});

describe('a form', () => {
  test('of a WABA takes effect for its administrators and operators only', async () => {
    const statuses = [];
    for (const role of ROLES) {
      const browser = browsers.get(role);
      await browser?.get('/portal/nothing');
      statuses.push((await browser?.post(`${OWN}/users/admin`))?.statusCode);
    }
    expect(statuses).toEqual([200, 200, 403, 404, 404, 303]);
  });
});

describe('registration refuses a page', () => {
  const register = (addPages: (pages: PortalApp) => void) => makeProbe(addPages);
  test.each([
    ['that does not say whom it is for', (pages: PortalApp) => pages.get('/portal/x', async () => '')],
    [
      'of a WABA’s users without a WABA',
      (pages: PortalApp) => pages.get('/portal/x', { config: PAGES.member }, async () => ''),
    ],
    [
      'of a WABA that does not check it',
      (pages: PortalApp) => pages.get('/portal/w/:wabaId/x', { config: PAGES.signedIn }, async () => ''),
    ],
    [
      'by which members change something',
      (pages: PortalApp) => pages.post('/portal/w/:wabaId/x', { config: PAGES.member }, async () => ''),
    ],
  ])('%s', async (_name, addPages) => {
    await expect(register(addPages)).rejects.toThrow(/^page /);
  });
});
