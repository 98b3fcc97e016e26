import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { brokenLinks } from '../../../scripts/site/check-links.ts';
import { emptyPages } from '../../../scripts/site/empty-pages.ts';
import { linksOf } from '../../../scripts/site/navigation.ts';
import { openApiDocument } from '../../../scripts/site/openapi-document.ts';
import { ERROR_CODES } from '../../../src/api/errors/error-codes.ts';
import { launchChrome } from '../../support/browser.ts';
import { operationsOf } from '../../support/openapi-document.ts';
import { apiOfFile } from '../api/api-harness.ts';

/** The site as `npm run docs` builds it, served by the gateway and read in a browser. */

const run = promisify(execFile);
const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));

const site = mkdtempSync(join(tmpdir(), 'heliograph-docs-'));
const api = apiOfFile(async () => ({ docsFolder: join(site, 'dist') }));
let base: string;
let browser: Browser;

beforeAll(async () => {
  const built = run(process.execPath, ['scripts/docs-site.ts', '--out', join(site, 'dist')], {
    cwd: PROJECT,
  });
  // Other files wait for their servers meanwhile: the build takes only what they leave, which may be little for minutes.
  if (built.child.pid !== undefined) setPriority(built.child.pid, 10);
  base = await api.app.listen({ host: '127.0.0.1', port: 0 });
  browser = await launchChrome();
  // Before it is built, the addresses that others know answer already.
  expect((await api.app.inject('/docs')).headers.location).toBe('/docs/errors');
  expect((await api.app.inject('/docs/errors')).payload).toContain('id="invalid_parameter"');
  expect((await api.app.inject('/llms.txt')).statusCode).toBe(404);
  await built;
}, 900_000);
afterAll(async () => {
  await browser?.close();
  rmSync(site, { recursive: true, force: true });
});

type Visit = { page: Page; said: string[]; asked: string[] };

/** A page with what the browser complained about and whom it asked. */
async function visit(path: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext(options);
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const said: string[] = [];
  const asked: string[] = [];
  page.on('console', (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => said.push(String(error)));
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(`${base}${path}`, { waitUntil: 'networkidle' });
  return { page, said, asked };
}

function expectQuiet({ said, asked }: Visit): void {
  expect(said).toEqual([]);
  expect(asked.length).toBeGreaterThan(3);
  expect(asked.filter((url) => !url.startsWith(base) && !url.startsWith('data:'))).toEqual([]);
}

test('a reader goes from the first page to an event and finds a page by its words, without a request to others', async () => {
  const visited = await visit('/docs');
  const { page } = visited;
  await page.click('.VPFeatures a:has-text("Event catalogue")');
  await page.click('.vp-doc a:has-text("media.ready")');
  await page.waitForURL('**/docs/events/media-ready');
  // The address changes before the page does.
  await page.locator('.vp-doc', { hasText: '"eventType": "media.ready"' }).waitFor();
  await page.click('.VPNavBarSearch button');
  await page.fill('.search-input', 'rotate the secret');
  await page.locator('.VPLocalSearchBox .result').first().click();
  await page.waitForURL((url) => !url.pathname.endsWith('media-ready'));
  await page.click('.VPSwitchAppearance >> visible=true');
  // The colours change in a transition, which begins after the click.
  await page.waitForSelector('html.dark', { state: 'attached' });
  expectQuiet(visited);
});

test('the reference shows each operation and each code of error below its own anchor', async () => {
  for (const { tags = [], operationId = '', method, path } of operationsOf(await openApiDocument())) {
    const file = `${String(tags[0]).toLowerCase().replaceAll(' ', '-')}.html`;
    const html = readFileSync(join(site, 'dist/api', file), 'utf8');
    expect(html, operationId).toContain(` id="${operationId.toLowerCase()}"`);
    expect(html).toContain(`verb-${method.toLowerCase()}`);
    expect(html).toContain(path);
  }
  const platform = readFileSync(join(site, 'dist/platform-api/index.html'), 'utf8');
  for (const { operationId = '', path } of operationsOf(await openApiDocument('platform'))) {
    expect(platform, operationId).toContain(` id="${operationId.toLowerCase()}"`);
    expect(platform).toContain(path);
  }
  const errors = (await api.app.inject('/docs/errors')).payload;
  for (const code of Object.keys(ERROR_CODES)) expect(errors).toContain(` id="${code}"`);
  const visited = await visit('/docs/errors#insufficient_scope', { colorScheme: 'dark' });
  expect(await visited.page.getAttribute('html', 'class')).toContain('dark');
  expect(await visited.page.locator('[id="insufficient_scope"]').isVisible()).toBe(true);
  expectQuiet(visited);
});

test.each(['/docs/', '/docs/tenants/webhooks', '/docs/api/messages', '/docs/events/', '/docs/errors'])(
  'on a phone, %s is no wider than the screen',
  async (path) => {
    const visited = await visit(path, {
      viewport: { width: 390, height: 844 },
      isMobile: true,
      hasTouch: true,
    });
    expect(await visited.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    expectQuiet(visited);
  },
);

test('the policy allows no script or style within a page, and no page has one', async () => {
  const { headers } = await api.app.inject('/docs/tenants/webhooks');
  expect(headers['content-security-policy']).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'self';/,
  );
  expect(headers['content-security-policy']).not.toContain('unsafe');
  const pages = readdirSync(join(site, 'dist'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.html'),
  );
  expect(pages.length).toBeGreaterThan(100);
  for (const page of pages) {
    const html = readFileSync(join(site, 'dist', page), 'utf8');
    expect(html, page).not.toMatch(/<script(?![^>]* src=)|<style|<[a-z][^<>]* style=/);
  }
});

test('llms.txt names the pages, each of which is there as Markdown', async () => {
  const { payload, headers } = await api.app.inject('/llms.txt');
  expect(headers['content-type']).toContain('text/plain');
  expect(payload).toMatch(/^# Heliograph\n\n> .+\n\n## Tenant developers\n/);
  const links = [...payload.matchAll(/^- \[.+?\]\((\/docs\/\S+\.md)\): \S/gm)].map(([, link = '']) => link);
  expect(links.length).toBeGreaterThan(40);
  expect(links).toContain('/docs/tenants/webhooks.md');
  for (const link of links) {
    const page = await api.app.inject(link);
    expect([link, page.statusCode]).toEqual([link, 200]);
    expect(page.payload).toMatch(/^# /m);
  }
  const full = (await api.app.inject('/llms-full.txt')).payload;
  expect(full).toContain('# Webhooks');
  expect(full).toContain('{#sendmessage}');
});

test('each address of the sidebar answers 200 with its page, without JavaScript', async () => {
  const { sidebar } = JSON.parse(readFileSync(join(PROJECT, 'site/.pages/navigation.json'), 'utf8'));
  const links = linksOf(sidebar);
  expect(links.length).toBeGreaterThan(100);
  for (const { link } of links) {
    const { statusCode, payload } = await api.app.inject(`/docs${link}`);
    expect([link, statusCode]).toEqual([link, 200]);
    expect(payload, link).toMatch(/<main[^>]*><div[^>]*><div><h1 /);
  }
});

test('a page and a folder of one name are both reached, with and without a slash at the end', async () => {
  const { statusCode, headers } = await api.app.inject('/docs/tenants/cloud-api/?from=mail');
  expect([statusCode, headers.location]).toEqual([301, '/docs/tenants/cloud-api?from=mail']);
  expect((await api.app.inject('/docs/tenants/quick-start')).headers.location).toBe(
    '/docs/tenants/quick-start/',
  );
  expect((await api.app.inject('/docs/tenants/cloud-api/nothing/')).statusCode).toBe(404);
  expect((await api.app.inject('/docs//example.com/')).headers.location).toBeUndefined();
});

test.each([
  ['listen', '/docs/tenants/cli'],
  ['24 hour window', '/docs/tenants/api'],
  ['export', '/docs/tenants/customer-data'],
])('the search for %s finds %s first', async (words, expected) => {
  const { page } = await visit('/docs/tenants/api');
  await page.click('.VPNavBarSearch button');
  await page.fill('.search-input', words);
  const first = page.locator('.VPLocalSearchBox .result').first();
  await first.waitFor();
  expect(new URL((await first.getAttribute('href')) ?? '', base).pathname).toBe(expected);
});

test('pages have the names of the products, and one description each in llms.txt', async () => {
  const { payload } = await api.app.inject('/llms.txt');
  for (const name of ['n8n', 'frappe_whatsapp', 'curl']) expect(payload).toContain(`- [${name}](`);
  const about = [...payload.matchAll(/\.md\): (.+)$/gm)].map(([, text]) => text);
  const repeated = about.filter((text, index) => about.indexOf(text) !== index);
  expect(repeated).toEqual([]);
  for (const page of ['clients/typescript', 'clients/python', 'clients/go', 'glossary']) {
    expect(payload).toContain(`(/docs/${page}.md)`);
  }
});

test('double braces are text, as on GitHub', async () => {
  const { page, said } = await visit('/docs/tenants/cloud-api/n8n');
  expect(await page.locator('.vp-doc').textContent()).toContain('{{ $json.messages[0].id }} is the id');
  expect(said).toEqual([]);
});

test('a page whose content was not rendered is found', () => {
  const dist = join(site, 'dist');
  const pages = ['tenants/api.md', 'tenants/cli.md', 'tenants/quick-start/index.md', 'index.md'];
  expect(emptyPages(dist, pages)).toEqual([]);
  const file = join(dist, 'tenants/cli.html');
  const html = readFileSync(file, 'utf8');
  onTestFinished(() => writeFileSync(file, html));
  writeFileSync(file, html.replace(/(<main[^>]*><div[^>]*>)[\s\S]*?(<\/div><\/main>)/, '$1$2'));
  expect(emptyPages(dist, [...pages, 'tenants/lost.md'])).toEqual(['tenants/cli.md', 'tenants/lost.md']);
});

test('a link that leads nowhere is found', () => {
  expect(brokenLinks(join(site, 'dist'), '/docs/')).toEqual([]);
  rmSync(join(site, 'dist/tenants/mcp.html'));
  expect(brokenLinks(join(site, 'dist'), '/docs/')).toContain('tenants/webhooks.html → /docs/tenants/mcp');
});

test('a path that is no page has an answer for people, and the usual one for programs', async () => {
  const page = await api.app.inject({ url: '/docs/nothing', headers: { accept: 'text/html' } });
  expect([page.statusCode, page.headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
  for (const url of ['/docs/nothing', '/docs/../package.json', '/docs/%2e%2e/%2e%2e/package.json']) {
    const answer = await api.app.inject(url);
    expect([url, answer.statusCode, answer.json().error.code]).toEqual([url, 404, 'route_not_found']);
  }
});
