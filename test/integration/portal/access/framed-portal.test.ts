import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Frame, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { execute, queryValue } from '../../../../src/platform/postgres/sql.ts';
import { launchChrome } from '../../../support/browser.ts';
import { apiOfFile, PUBLIC_URL, testConfig } from '../../api/api-harness.ts';
import { errorOf } from '../../api/provisioning/platform-client.ts';
import { listen, picture } from '../chrome.ts';
import { newOffice, openBrowser } from '../portal-browser.ts';
import { pathOfLink, shopOf, visitBy } from './link-visits.ts';

/** A page of the operator's product has the portal in a frame. Its origin is another site: 127.0.0.1 and localhost are two. */

let product: Server;
let elsewhere: Server;
const originOf = (server: Server) => `http://localhost:${(server.address() as AddressInfo).port}`;

/** A page that has what its address names in a frame. */
function pageServer(): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer((request, response) => {
      const src = new URL(request.url ?? '/', 'http://localhost').searchParams.get('src') ?? 'about:blank';
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(
        `<!doctype html><meta name="viewport" content="width=device-width"><title>CRM</title><h1>CRM</h1><iframe src="${src}" style="border:0;width:100%;height:700px" title="Webhooks"></iframe>`,
      );
    }).listen(0, '127.0.0.1', () => resolve(server));
  });
}

const api = apiOfFile(async () => {
  [product, elsewhere] = [await pageServer(), await pageServer()];
  return { config: testConfig({ HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: originOf(product) }) };
});

let chrome: Browser;
let portal: string;

beforeAll(async () => {
  portal = await listen(api.app);
  chrome = await launchChrome();
});

afterAll(async () => {
  await chrome?.close();
  for (const server of [product, elsewhere]) server?.close();
});

const FRAMED = { 'sec-fetch-dest': 'iframe' };
const TOP = { 'sec-fetch-dest': 'document' };
const PHONE = { viewport: { width: 390, height: 844 } };

async function framedLink() {
  const origin = originOf(product);
  const shop = await shopOf(api);
  const given = { embed: { origin }, refreshUrl: `${origin}/again`, page: 'endpoints' };
  const made = await shop.link(given);
  return { shop, given, path: pathOfLink(made) };
}

async function inFrame(page: Page, at: Server, src: string): Promise<Frame> {
  await page.goto(`${originOf(at)}/?src=${encodeURIComponent(src)}`);
  const handle = await page.locator('iframe').elementHandle();
  const frame = await handle?.contentFrame();
  if (!frame) throw new Error('the page has no frame');
  return frame;
}

test('a frame on the product’s page, on a phone, is signed in at once, and its forms work', async () => {
  const { shop, path } = await framedLink();
  const context = await chrome.newContext(PHONE);
  const page = await context.newPage();
  const frame = await inFrame(page, product, `${portal}${path}`);
  await frame.getByRole('heading', { name: 'Webhook Settings' }).waitFor();
  expect(await frame.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  await picture(page, 'framed-endpoints-phone');
  await frame.goto(`${portal}${shop.path}/endpoints/new`);
  await frame.getByLabel('URL').first().fill('https://93.184.216.34/hook');
  await picture(page, 'framed-new-endpoint-phone');
  await frame.getByRole('button', { name: 'Add' }).click();
  const text = 'select count(*)::integer from webhook_endpoints where waba_id = :wabaId';
  await expect.poll(() => queryValue(api.database, text, { wabaId: shop.wabaId })).toBe(1);
  await picture(page, 'framed-secret-phone');
  const cookies = (await context.cookies()).filter(({ name }) => name.startsWith('__Host-heliograph'));
  const session = cookies.find(({ name }) => name === '__Host-heliograph-embed');
  expect(session).toMatchObject({ secure: true, httpOnly: true, sameSite: 'None' });
  expect(session).toHaveProperty('partitionKey');
  expect(cookies.map(({ name }) => name)).not.toContain('__Host-heliograph');

  const tab = await context.newPage();
  await tab.goto(`${portal}${shop.path}/endpoints`);
  expect(new URL(tab.url()).pathname).toBe('/portal/sign-in');
  await context.close();
});

test('no page of another origin gets the link, its session or another one into a frame', async () => {
  const { shop, path } = await framedLink();
  const context = await chrome.newContext();
  const page = await context.newPage();
  const refused: string[] = [];
  page.on('console', (message) => refused.push(message.text()));
  const frame = await inFrame(page, elsewhere, `${portal}${path}`);
  await expect.poll(() => refused.join(' ')).toContain('frame-ancestors');
  expect(
    await frame
      .getByRole('button')
      .count()
      .catch(() => 0),
  ).toBe(0);

  const framed = await inFrame(page, product, `${portal}${path}`);
  await framed.getByRole('heading', { name: 'Webhook Settings' }).waitFor();
  refused.length = 0;
  await inFrame(page, elsewhere, `${portal}${shop.path}/endpoints`);
  await expect.poll(() => refused.join(' ')).toMatch(/frame-ancestors|X-Frame-Options/);

  const office = await newOffice(api);
  const normal = await office.admin.get(office.path, FRAMED);
  expect([normal.statusCode, normal.headers.location]).toEqual([
    303,
    expect.stringContaining('/portal/sign-in'),
  ]);
  await context.close();
});

test('the session of a frame opens no page outside, and a link outside none in a frame', async () => {
  const { shop, given, path } = await framedLink();
  const browser = openBrowser(api.app);
  const outside = await browser.get(path, TOP);
  expect([outside.statusCode, outside.headers['x-frame-options']]).toEqual([410, 'DENY']);
  expect((await browser.post(path, {}, TOP)).statusCode).not.toBe(303);

  const page = await browser.get(path, FRAMED);
  expect(page.headers['content-security-policy']).toContain(`frame-ancestors ${given.embed.origin};`);
  expect(page.headers['x-frame-options']).toBeUndefined();
  const opened = await browser.post(path, {}, FRAMED);
  expect([opened.statusCode, opened.headers.location]).toEqual([303, `${shop.path}/endpoints`]);
  const cookie = opened.headers['set-cookie']?.toString() ?? '';
  expect(cookie).toMatch(/__Host-heliograph-embed=[^;]+;.*Partitioned/);
  expect(cookie).toMatch(/HttpOnly; Secure; Partitioned; SameSite=None|Secure.*SameSite=None/);

  const inside = await browser.get(`${shop.path}/endpoints`, FRAMED);
  expect([inside.statusCode, inside.headers['x-frame-options']]).toEqual([200, undefined]);
  expect(inside.headers['content-security-policy']).toContain(`frame-ancestors ${given.embed.origin};`);
  const value = browser.cookies.get('__Host-heliograph-embed') ?? '';
  for (const headers of [TOP, { 'sec-fetch-dest': 'empty' }, {}]) {
    expect((await browser.get(`${shop.path}/endpoints`, headers)).statusCode).toBe(303);
    const stolen = openBrowser(api.app);
    stolen.cookies.set('__Host-heliograph', value);
    expect((await stolen.get(`${shop.path}/endpoints`, headers)).statusCode).toBe(303);
  }
  const fetched = { 'sec-fetch-dest': 'empty', 'x-heliograph-framed': '1' };
  expect((await browser.get(`${shop.path}/deliveries/rows`, fetched)).statusCode).toBe(200);

  const top = await visitBy(api, shop, { refreshUrl: undefined });
  top.cookies.set('__Host-heliograph-embed', top.cookies.get('__Host-heliograph') ?? '');
  expect((await top.get(`${shop.path}/endpoints`, FRAMED)).statusCode).toBe(303);
});

test('a form in the frame that comes from elsewhere, or without its token, is refused', async () => {
  const { shop, path } = await framedLink();
  const browser = openBrowser(api.app);
  await browser.get(path, FRAMED);
  await browser.post(path, {}, FRAMED);
  await browser.get(`${shop.path}/endpoints/new`, FRAMED);
  const form = { url: 'https://receiver.example/hook' };
  const foreign = { ...FRAMED, origin: originOf(product), 'sec-fetch-site': 'cross-site' };
  expect((await browser.post(`${shop.path}/endpoints`, form, foreign)).statusCode).toBe(403);
  const tokenless = { ...FRAMED, origin: PUBLIC_URL };
  expect((await browser.post(`${shop.path}/endpoints`, { ...form, _csrf: 'x' }, tokenless)).statusCode).toBe(
    403,
  );
});

test('a session that is over, and a change that comes late, lead out of the frame to the product', async () => {
  const { shop, given, path } = await framedLink();
  const browser = openBrowser(api.app);
  await browser.get(path, FRAMED);
  await browser.post(path, {}, FRAMED);
  await browser.get(`${shop.path}/endpoints/new`, FRAMED);
  await execute(
    api.database,
    `update user_sessions set proven_at = now() - interval '11 minutes' where portal_link_id is not null`,
  );
  const late = await browser.post(`${shop.path}/endpoints`, { url: 'https://receiver.example/hook' }, FRAMED);
  expect([late.statusCode, late.headers['x-frame-options']]).toEqual([403, undefined]);
  expect(late.body).toContain(`href="${given.refreshUrl}" target="_top"`);
  await shop.program('DELETE', shop.sessions);
  const over = await browser.get(shop.path, FRAMED);
  expect([over.statusCode, over.headers['x-frame-options']]).toEqual([403, undefined]);
  expect(over.body).toContain(`href="${given.refreshUrl}" target="_top"`);
});

test('a link is for no frame of an origin that the operator has not listed', async () => {
  const shop = await shopOf(api);
  for (const origin of [
    originOf(elsewhere),
    `${originOf(product)}/`,
    '*',
    "'self'",
    `${originOf(product)} *`,
  ]) {
    const refusal = errorOf(await shop.link({ embed: { origin }, refreshUrl: undefined }));
    expect([origin, refusal]).toEqual([origin, [422, 'url_not_allowed', 'embed']]);
  }
});
