import type { LightMyRequestResponse } from 'fastify';
import { beforeAll, expect, test } from 'vitest';
import { apiOfFile, WABA } from '../api/api-harness.ts';
import { HOSTILE_TEXTS, liveMarkup } from './hostile-texts.ts';
import { liveIn } from './lived-in.ts';
import { markupProblems } from './markup-problems.ts';
import { filledIn, type PageRoute, pageRoutes, pathOf } from './page-routes.ts';
import { openBrowser, type PortalBrowser } from './portal-browser.ts';

/** Every page that can be reached by links, with everything behind it that people outside can make up. */

const MAX_BYTES = 100 * 1024;

/** So many pages of one kind are looked at by one person. */
const OF_A_KIND = 3;

/** Answers for scripts, and what no link leads to. */
const BESIDE = [
  '/portal/w/:wabaId/deliveries/rows',
  '/portal/operator/deliveries/rows',
  '/portal/w/:wabaId/endpoints/check-url',
  '/portal/w/:wabaId/replays/:id/progress',
  '/portal/w/:wabaId/broadcasts/:id/progress',
  '/portal/w/:wabaId/endpoints/:id/tests/:deliveryId/outcome',
  '/portal/w/:wabaId/endpoints/:id/tests/:deliveryId',
  '/portal/brand/:file',
  '/portal/enter/:token',
  '/portal/invitations/:token',
  '/portal/set-up',
  '/portal/sign-in',
  '/portal/sign-in/code',
  '/portal/confirm',
  '/portal/confirmed',
];

type Seen = { path: string; answer: LightMyRequestResponse; problems: string[] };

const api = apiOfFile();
let routes: PageRoute[];
let operator: PortalBrowser;
let seen: Seen[];

beforeAll(async () => {
  routes = pageRoutes(api.routes);
  const people = await liveIn(api);
  operator = people.operator;
  seen = [];
  for (const browser of Object.values(people))
    seen.push(...(await walk(browser, ['/portal', `/portal/w/${WABA}`])));
  const visitor = openBrowser(api.app);
  seen.push(
    ...(await walk(visitor, ['/portal/sign-in?next=/portal', '/portal/set-up', '/portal/invitations/x'])),
  );
});

/** Opens the pages that links lead to, a few of each kind. */
async function walk(browser: PortalBrowser, starts: readonly string[]): Promise<Seen[]> {
  const found: Seen[] = [];
  const known = new Set(starts);
  const counts = new Map<string, number>();
  for (const path of known) {
    const route = routeOf(path);
    const count = counts.get(route) ?? 0;
    if (count >= OF_A_KIND) continue;
    counts.set(route, count + 1);
    const answer = await browser.get(path);
    const isPage = String(answer.headers['content-type']).startsWith('text/html');
    found.push({ path, answer, problems: isPage ? await markupProblems(answer.body) : [] });
    if (answer.headers.location !== undefined) known.add(answer.headers.location);
    for (const [, link = ''] of answer.body.matchAll(/href="(\/portal[^"#]*)/g)) {
      if (!link.startsWith('/portal/assets/')) known.add(link.replaceAll('&amp;', '&'));
    }
  }
  return found;
}

/** The registered page that a path is of; those with the least parameters win, as in the router. */
function routeOf(path: string): string {
  const parts = (path.split('?')[0] ?? '').split('/');
  const fitting = routes.filter(({ method, url }) => {
    const names = url.split('/');
    return (
      method === 'GET' &&
      names.length === parts.length &&
      names.every((name, at) => name.startsWith(':') || name === parts[at])
    );
  });
  const byParameters = fitting.toSorted((a, b) => a.url.split(':').length - b.url.split(':').length);
  return byParameters[0]?.url ?? path;
}

test('links lead to every page, and none of them leads nowhere', () => {
  const reached = new Set(seen.map(({ path }) => routeOf(path)));
  const gets = routes.filter(({ method }) => method === 'GET').map(({ url }) => url);
  const linked = gets.filter((url) => !BESIDE.includes(url) && !url.startsWith('/portal/sandbox'));
  expect(linked.filter((url) => !reached.has(url))).toEqual([]);
  expect(linked.length).toBeGreaterThan(30);
  const broken = seen.filter(
    ({ path, answer }) => answer.statusCode >= 400 && !BESIDE.includes(routeOf(path)),
  );
  expect(broken.map(({ path, answer }) => [path, answer.statusCode])).toEqual([]);
});

test('every page is one of the menu beside it, or has a way back to one', () => {
  const beside = seen.filter(({ answer }) => answer.body.includes('<nav class="side"'));
  const lost = beside.filter(({ path, answer: { statusCode, body } }) => {
    const [before = ''] = body.split('<main');
    const isInMenu = before.includes(` href="${path.split('?')[0]}"`);
    return statusCode === 200 && !isInMenu && !body.includes('<nav class="trail"');
  });
  expect([...new Set(lost.map(({ path }) => routeOf(path)))]).toEqual([]);
  expect(beside.length).toBeGreaterThan(60);
});

test('every page is what the standard calls a page, small, kept by nobody, and lets nothing run', () => {
  const wrong = seen.flatMap(({ path, answer, problems }) => {
    const { headers, body, rawPayload } = answer;
    const policy = String(headers['content-security-policy']);
    const isPage = String(headers['content-type']).startsWith('text/html');
    const inline = !isPage
      ? undefined
      : /<style|<script>|\sstyle="|\son[a-z]+="|href="(?!\/|#|\?|http)/i.exec(body)?.[0];
    const found = [
      ...problems,
      rawPayload.length >= MAX_BYTES && `${rawPayload.length} bytes`,
      headers['cache-control'] !== 'no-store' && `is kept: ${headers['cache-control']}`,
      !policy.startsWith("default-src 'none'; style-src 'self'; script-src 'self'; ") && policy,
      /unsafe|nonce|https?:|\*/.test(policy) && policy,
      headers['x-content-type-options'] !== 'nosniff' && 'may be taken for something else',
      inline !== undefined && `inline: ${inline}`,
    ];
    return found.filter(Boolean).map((problem) => `${path}: ${problem}`);
  });
  expect(wrong).toEqual([]);
});

test('what people outside made up is text on every page that shows it', () => {
  const pages = seen.filter(({ answer }) => String(answer.headers['content-type']).startsWith('text/html'));
  expect(pages.flatMap(({ path, answer }) => liveMarkup(answer.body).map((live) => [path, live]))).toEqual(
    [],
  );
  const shown = pages.map(({ answer }) => answer.body).join('\n');
  const escaped = (text: string) =>
    text
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
      .replaceAll("'", '&#39;');
  expect(HOSTILE_TEXTS.filter((text) => !shown.includes(escaped(text)))).toEqual([]);
  const showing = new Set(
    pages.filter(({ answer }) => answer.body.includes('alert(1)')).map(({ path }) => routeOf(path)),
  );
  for (const url of [
    'conversations/:id',
    'conversations',
    'deliveries/:id',
    'endpoints/:id',
    'keys',
    'replays/:id',
    'broadcasts/:id',
    'broadcasts/:id/start',
    'broadcasts/new',
    'broadcasts/new/template',
    '',
  ]) {
    expect(showing).toContain(`/portal/w/:wabaId${url && `/${url}`}`);
  }
  for (const url of [
    'health',
    'tenants',
    'users',
    'approvals/:id',
    'wabas/:wabaId',
    'audit',
    'platform-keys',
  ]) {
    expect(showing).toContain(`/portal/operator/${url}`);
  }
});

test('every form answers hostile values with a page that is one', async () => {
  await operator.get('/portal/account');
  const left = ['/portal/sign-out', '/portal/sandbox'];
  for (const route of routes) {
    if (route.method !== 'POST' || left.some((url) => route.url.startsWith(url))) continue;
    for (const text of HOSTILE_TEXTS.slice(0, 3)) {
      const fields = Object.fromEntries(Object.keys(filledIn(route)).map((name) => [name, text]));
      const answer = await operator.post(pathOf(route, { wabaId: WABA, id: text }), fields);
      expect([route.name, answer.statusCode < 500]).toEqual([route.name, true]);
      if (!String(answer.headers['content-type']).startsWith('text/html')) continue;
      expect([route.name, await markupProblems(answer.body)]).toEqual([route.name, []]);
      expect([route.name, liveMarkup(answer.body)]).toEqual([route.name, []]);
    }
  }
});
