import { deflateSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { launchChrome } from '../../../support/browser.ts';
import { apiOfFile, testConfig } from '../../api/api-harness.ts';
import { errorOf } from '../../api/provisioning/platform-client.ts';
import { PRODUCT, pathOfLink, shopOf, visitBy } from '../access/link-visits.ts';
import { listen, problemsInAllLooks } from '../chrome.ts';
import { openBrowser } from '../portal-browser.ts';

/** The portal with the name, the logo and the colour of the operator's product. */

const api = apiOfFile(async () => ({
  config: testConfig({ HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: PRODUCT }),
}));

let chrome: Browser;
let origin: string;

beforeAll(async () => {
  origin = await listen(api.app);
  chrome = await launchChrome();
});
afterAll(async () => await chrome?.close());

const CRC = Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

function chunk(kind: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), data]);
  let crc = 0xffffffff;
  for (const byte of body) crc = ((CRC[(crc ^ byte) & 255] ?? 0) ^ (crc >>> 8)) >>> 0;
  const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  size.writeUInt32BE(data.length);
  sum.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
  return Buffer.concat([size, body, sum]);
}

/** A picture of one colour that browsers show. */
function png(width: number, height: number, [red, green, blue]: number[]): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const line = Buffer.concat([
    Buffer.from([0]),
    ...Array(width).fill(Buffer.from([red ?? 0, green ?? 0, blue ?? 0])),
  ]);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(Buffer.concat(Array(height).fill(line)))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const LOGO = png(96, 32, [10, 110, 90]);

test('a tenant’s pages, and the page of a link, have its brand; others that of the installation', async () => {
  const [shop, other] = [await shopOf(api), await shopOf(api)];
  const brand = { name: 'Acme Messaging', accentColor: '#0A6E5A', logo: LOGO.toString('base64') };
  const made = await shop.program('PUT', `/tenants/${shop.name}/brand`, brand);
  expect([made.status, made.body]).toEqual([
    200,
    {
      name: 'Acme Messaging',
      accentColor: '#0a6e5a',
      logoUrl: expect.stringMatching(/\/portal\/brand\/[0-9a-f]{64}$/),
    },
  ]);
  const logo = new URL(made.body.logoUrl).pathname;
  const opening = await openBrowser(api.app).get(pathOfLink(await shop.link()));
  const page = await (await visitBy(api, shop)).get(shop.path);
  for (const { body } of [opening, page]) {
    expect(body).toContain('· Acme Messaging</title>');
    expect(body).toContain(`<img src="${logo}"`);
    expect(body).toContain('href="/portal/brand/accent-0a6e5a.css"');
    expect(body).not.toContain('Heliograph');
  }
  const plain = await (await visitBy(api, other)).get(other.path);
  expect(plain.body).not.toContain('/portal/brand/');

  const file = await openBrowser(api.app).get(logo);
  expect([file.statusCode, file.headers['content-type'], file.rawPayload.equals(LOGO)]).toEqual([
    200,
    'image/png',
    true,
  ]);
  expect(file.headers['x-content-type-options']).toBe('nosniff');
  const css = await openBrowser(api.app).get('/portal/brand/accent-0a6e5a.css');
  expect([css.statusCode, css.body]).toEqual([
    200,
    expect.stringMatching(/^:root \{\n {2}--accent: light-dark\(#0a6e5a, #[0-9a-f]{6}\);\n\}\n$/),
  ]);

  const cleared = await shop.program('PUT', `/tenants/${shop.name}/brand`, { logo: null });
  expect(cleared.body).toEqual({ name: 'Acme Messaging', accentColor: '#0a6e5a', logoUrl: null });
  expect((await openBrowser(api.app).get(logo)).statusCode).toBe(404);
  const entries = await query(
    api.database,
    `select detail from audit_log where action = 'brand.set' and tenant_id = (select id from tenants where external_id = :name)`,
    { name: shop.name },
  );
  expect(entries.length).toBe(2);
});

test('the installation’s brand is on the sign-in and on pages of tenants without their own, value by value', async () => {
  const [shop, other] = [await shopOf(api), await shopOf(api)];
  await shop.program('PUT', '/brand', { name: 'Relay', accentColor: '#5b2a86' });
  await shop.program('PUT', `/tenants/${shop.name}/brand`, { name: 'Acme Messaging' });
  const signIn = await openBrowser(api.app).get('/portal/sign-in');
  expect(signIn.body).toContain('· Relay</title>');
  expect((await (await visitBy(api, other)).get(other.path)).body).toContain('· Relay</title>');
  const own = await (await visitBy(api, shop)).get(shop.path);
  expect(own.body).toContain('· Acme Messaging</title>');
  expect(own.body).toContain('accent-5b2a86.css');
  await shop.program('PUT', '/brand', { name: null, accentColor: null });
  expect((await openBrowser(api.app).get('/portal/sign-in')).body).toContain('· Heliograph</title>');
});

test('what cannot be read, or could run, is refused with its reason', async () => {
  const shop = await shopOf(api);
  const path = `/tenants/${shop.name}/brand`;
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>');
  const refused: [object, string, RegExp][] = [
    [{ accentColor: '#ffd400' }, 'accentColor', /contrast of 1\.43:1; it needs 4\.5:1/],
    [{ accentColor: 'yellow' }, 'accentColor', /must be a colour/],
    [{ logo: svg.toString('base64') }, 'logo', /PNG, JPEG or WebP/],
    [{ logo: 'https://evil.example/logo.png' }, 'logo', /base64/],
    [{ logo: png(1_025, 1, [0, 0, 0]).toString('base64') }, 'logo', /1024 pixels/],
    [{ logo: Buffer.concat([LOGO, Buffer.alloc(33_000)]).toString('base64') }, 'logo', /32768 bytes/],
    [{ name: 'x'.repeat(61) }, 'name', /60/],
    [{ name: 'two\nlines' }, 'name', /one line/],
  ];
  for (const [change, param, reason] of refused) {
    const answer = await shop.program('PUT', path, change);
    expect([errorOf(answer), answer.body.error?.message]).toEqual([
      [400, 'invalid_parameter', param],
      expect.stringMatching(reason),
    ]);
  }
  const browser = await visitBy(api, shop);
  for (const search of ['?accentColor=%23ff0000', '?logo=https://evil.example/x.png', '?name=Evil']) {
    expect((await browser.get(`${shop.path}${search}`)).body).not.toMatch(/evil|ff0000/i);
  }
  for (const file of [
    'accent-ffd400.css',
    'accent-0a6e5a.css.js',
    'accent-;}.css',
    `${'0'.repeat(64)}`,
    '../assets/portal.css',
  ]) {
    expect([file, (await browser.get(`/portal/brand/${encodeURIComponent(file)}`)).statusCode]).toEqual([
      file,
      404,
    ]);
  }
});

test('pages with a brand can be read in light, in dark and on a phone', async () => {
  const shop = await shopOf(api);
  await shop.program('PUT', `/tenants/${shop.name}/brand`, {
    name: 'Acme Messaging for Shops and Restaurants',
    accentColor: '#0a6e5a',
    logo: LOGO.toString('base64'),
  });
  const context = await chrome.newContext();
  const page = await context.newPage();
  await page.goto(`${origin}${pathOfLink(await shop.link({ page: 'endpoints' }))}`);
  const problems = await problemsInAllLooks(page, 'brand-enter');
  await page.getByRole('button', { name: 'Open the portal' }).click();
  await page.getByRole('heading', { name: 'Webhook Settings' }).waitFor();
  problems.push(...(await problemsInAllLooks(page, 'brand-endpoints')));
  await shop.program('PUT', `/tenants/${shop.name}/brand`, { logo: null, accentColor: '#000000' });
  await page.reload();
  problems.push(...(await problemsInAllLooks(page, 'brand-name-only')));
  expect(problems).toEqual([]);
  await context.close();
});
