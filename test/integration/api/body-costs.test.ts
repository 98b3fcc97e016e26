import { Readable } from 'node:stream';
import { beforeEach, expect, test, vi } from 'vitest';
import { ALLOWED_CALLS } from '../../../src/api/graph/allowed-calls.ts';
import { costlyBodies, costlyValues } from '../../support/costly-bodies.ts';
import { allocatedBy, leastCpuMs } from '../../support/cpu-budget.ts';
import { filledIn, pageRoutes } from '../portal/page-routes.ts';
import { newOffice, newUser, openBrowser, type PortalBrowser } from '../portal/portal-browser.ts';
import { freshKeyHolder, type KeyHolder, PUBLIC_URL, signed } from './api-harness.ts';
import { PLACE, templatesOf } from './documented-requests.ts';
import { apiOnRecordingUpstream, type UpstreamAccount } from './graph/recording-upstream.ts';
import { isOfFacade, type MatrixRoute, matrixRoutes } from './route-matrix.ts';

/**
 * Every registered route that may have a body × every kind of body, as large as the route takes it and made of the
 * smallest values: none holds up the event loop, on which all tenants wait. A new route is covered by itself.
 */

vi.setConfig({ testTimeout: 900_000, hookTimeout: 120_000 });

/** Of CPU, for bodies of up to a MiB; larger ones may cost as much per MiB. */
const MAX_CPU_MS = 50;
/** A webhook of 3 MiB has been signed by upstream before anything looks into it. */
const MAX_WEBHOOK_CPU_MS = 100;
const MIB = 1024 * 1024;
const MAX_ALLOCATED_BYTES = 4 * MIB;
const ALLOCATED_PER_BYTE = 8;
/** Bodies that become the most objects. */
const LARGEST_IN_MEMORY = /^(many|as many) ({},|names)|a form of (a&|0&1)|many parts/;
/** As bodies come from a network. */
const CHUNK_BYTES = 64 * 1024;

const { api, upstream } = apiOnRecordingUpstream();
let facade: UpstreamAccount;
let holder: KeyHolder;
let routes: MatrixRoute[];

const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

beforeEach(async () => {
  facade = await upstream.newAccount(api.database);
  holder = await freshKeyHolder(api.database);
  routes = matrixRoutes(api.routes).filter(({ method }) => !READING.has(method));
});

type Asked = {
  name: string;
  url: string;
  headers: Record<string, string>;
  payload: string | Buffer;
};

/** How much a route takes of a body of a type. */
function limitOf({ url, method }: Pick<MatrixRoute, 'url' | 'method'>, contentType: string): number {
  const route = api.routes.find((one) => one.url === url && [one.method].flat().includes(method));
  const { bodyLimit = api.app.initialConfig.bodyLimit ?? 0, config } = route ?? {};
  if (contentType !== 'multipart/form-data') return bodyLimit;
  return config?.readsBody ? MIB : Math.max(bodyLimit, config?.fileBytes ?? 0);
}

let addresses = 0;
function newAddress(): string {
  addresses += 1;
  return `10.9.${addresses >> 8}.${addresses & 255}`;
}

/** Sends it; tells the status, and what is wrong with the answer or with what it cost. */
async function tried(
  method: string,
  { name, ...asked }: Asked,
): Promise<{ status: number; problems: unknown[] }> {
  const payload = Buffer.from(asked.payload);
  const perMib = asked.url === '/upstream/webhook' ? MAX_WEBHOOK_CPU_MS : MAX_CPU_MS;
  const budgetMs = perMib * Math.max(1, payload.length / MIB);
  let status = 0;
  const send = async () => {
    const sent = { method, ...asked, payload: inChunks(payload), remoteAddress: newAddress() };
    status = (await api.app.inject(sent as never)).statusCode;
  };
  const cpuMs = await leastCpuMs(send, budgetMs);
  const allocated = LARGEST_IN_MEMORY.test(name) ? await allocatedBy(send) : 0;
  const mostAllocated = MAX_ALLOCATED_BYTES + ALLOCATED_PER_BYTE * payload.length;
  const isWrong = cpuMs > budgetMs || allocated > mostAllocated || status >= 500;
  const problem = [method, asked.url.slice(0, 80), name, payload.length, status, cpuMs, allocated];
  return { status, problems: isWrong ? [problem] : [] };
}

/** Of a type that a route does not take, nothing is read: one body of it is enough. */
const NOT_TAKEN = 415;

function inChunks(payload: Buffer): Readable {
  const count = Math.ceil(payload.length / CHUNK_BYTES);
  const chunks = Array.from({ length: count }, (_, n) =>
    payload.subarray(n * CHUNK_BYTES, (n + 1) * CHUNK_BYTES),
  );
  return Readable.from(chunks, { objectMode: false });
}

async function problemsOf(
  route: MatrixRoute,
  { urls, headers, first = '' }: { urls: string[]; headers: Record<string, string>; first?: string },
): Promise<unknown[]> {
  const found: unknown[] = [];
  const notTaken = new Set<string>();
  for (const { name, contentType, payload } of costlyBodies((type) => limitOf(route, type), first)) {
    const all = { ...headers, 'content-type': contentType };
    const sign = route.url === '/upstream/webhook' ? signed(Buffer.from(payload)) : {};
    for (const url of urls.filter((one) => !notTaken.has(`${contentType} ${one}`))) {
      const asked = { name, url, headers: { ...all, ...sign }, payload };
      const { status, problems } = await tried(route.method, asked);
      found.push(...problems);
      if (status === NOT_TAKEN) notTaken.add(`${contentType} ${url}`);
    }
  }
  return found;
}

const isOfPortal = (url: string) => /^\/portal(\/|$)/.test(url);

test('no body of any type costs the External API, or what needs no key, more than 50 ms', async () => {
  const problems: unknown[] = [];
  const { authorization } = holder;
  const ours = routes.filter(({ url }) => !isOfFacade(url) && !isOfPortal(url));
  for (const route of ours) {
    const urls = [route.url.replaceAll(/:\w+/g, '1')];
    problems.push(...(await problemsOf(route, { urls, headers: { authorization } })));
  }
  expect(problems).toEqual([]);
  expect(ours.length).toBeGreaterThan(20);
});

/** Of the values that are taken, those that a check of a schema has the most work with. */
const IN_PLACES = new Set(['many 0,', 'many {"a":0},', 'many names', 'deep objects']);

test('no value in the place of any member of the External API costs more than 50 ms', async () => {
  const problems: unknown[] = [];
  let places = 0;
  for (const route of routes.filter(({ exampleBodies }) => exampleBodies.length > 0)) {
    const headers = { authorization: holder.authorization, 'content-type': 'application/json' };
    const url = route.url.replaceAll(/:\w+/g, '1');
    const limit = limitOf(route, 'application/json');
    for (const template of new Set(route.exampleBodies.flatMap(templatesOf))) {
      places += 1;
      for (const [name, value] of costlyValues(limit - template.length)) {
        if (!IN_PLACES.has(name)) continue;
        const payload = template.replace(`"${PLACE}"`, () => value);
        const asked = { name: `${name} in ${template.slice(0, 80)}`, url, headers, payload };
        problems.push(...(await tried(route.method, asked)).problems);
      }
    }
  }
  expect(problems).toEqual([]);
  expect(places).toBeGreaterThan(170);
});

/** The calls behind a route of the facade: those about own objects, and one about what nobody has. */
function facadeUrls({ url, method }: MatrixRoute): string[] {
  const own = { waba: facade.wabaId, number: facade.number, template: facade.template, flow: facade.flow };
  const ids = { ...own, nobodys: '1234567890' };
  const path = url.replace(/:version\([^/]*\)/, 'v26.0');
  const calls = Object.entries(ids).flatMap(([kind, id]) => {
    const edges =
      kind in ALLOWED_CALLS ? ALLOWED_CALLS[kind as keyof typeof ALLOWED_CALLS] : ALLOWED_CALLS.waba;
    const taken = Object.entries(edges).filter(([, { methods }]) => methods.some((one) => one === method));
    return taken.map(([edge]) => ({ id, edge: edge.replace('/*', '') }));
  });
  const urls = calls.map(({ id, edge }) => fill(path, id, edge)).filter((one) => one !== null);
  return [...new Set(urls)];
}

/** Null: the route is not that of the edge. */
function fill(path: string, id: string, edge: string): string | null {
  const [, own] = /\/:id\/(\w+)$/.exec(path) ?? [];
  if (own === undefined ? /:edge/.test(path) === (edge === '') : own !== edge) return null;
  return path.replace(':id', id).replace(':edge', edge).replace(':part', 'a');
}

test('no body of any type costs the facade more than 50 ms', async () => {
  const problems: unknown[] = [];
  let count = 0;
  for (const route of routes.filter(({ url }) => isOfFacade(url))) {
    const all = /:id/.test(route.url) ? facadeUrls(route) : [route.url.replace('*', 'a/b/c/d')];
    // With a version in front it is the same call.
    const urls = route.url.includes(':version') ? all.slice(0, 1) : all;
    problems.push(...(await problemsOf(route, { urls, headers: { authorization: `Bearer ${facade.key}` } })));
    count += urls.length;
  }
  expect(problems).toEqual([]);
  expect(count).toBeGreaterThan(30);
});

/** As a browser that has seen the page sends them. */
function browserHeaders(browser: PortalBrowser): Record<string, string> {
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  return { host: new URL(PUBLIC_URL).host, origin: PUBLIC_URL, 'sec-fetch-site': 'same-origin', cookie };
}

test('no form costs the portal more than 50 ms, signed in or not', async () => {
  const problems: unknown[] = [];
  const { wabaId, admin } = await newOffice(api);
  const operator = (await newUser(api, null)).browser;
  const stranger = openBrowser(api.app);
  await stranger.get('/portal/sign-in');
  for (const browser of [admin, operator]) await browser.get('/portal/account');
  const forms = pageRoutes(api.routes).filter(({ method }) => method === 'POST');
  const route = (one: { url: string }) =>
    ({ url: one.url, method: 'POST', exampleBodies: [] }) as unknown as MatrixRoute;
  for (const form of forms) {
    const browser = form.access === 'open' ? stranger : form.access === 'operator' ? operator : admin;
    const urls = [form.url.replace(':wabaId', wabaId).replaceAll(/:\w+/g, '1')];
    const first = `_csrf=${encodeURIComponent(browser.token())}&`;
    const headers = browserHeaders(browser);
    problems.push(...(await problemsOf(route(form), { urls, headers, first })));
    problems.push(...(await problemsOfFields(form, { url: urls[0] ?? '', headers, first })));
  }
  const catchAll = { urls: ['/portal/nothing'], headers: browserHeaders(stranger) };
  problems.push(...(await problemsOf(route({ url: '/portal/*' }), catchAll)));
  expect(problems).toEqual([]);
  expect(forms.length).toBeGreaterThan(40);
});

/** Each field of a form as long as the form may be, as one long text and as a list of the shortest entries. */
async function problemsOfFields(
  form: ReturnType<typeof pageRoutes>[number],
  { url, headers, first }: { url: string; headers: Record<string, string>; first: string },
): Promise<unknown[]> {
  const problems: unknown[] = [];
  const contentType = 'application/x-www-form-urlencoded';
  const limit = limitOf({ url: form.url, method: 'POST' }, contentType);
  const fields = filledIn(form);
  for (const field of Object.keys(fields)) {
    const { [field]: _, ...others } = fields;
    const rest = `${first}${new URLSearchParams(others)}&${field}=`;
    for (const piece of ['a', 'a%0A', 'a,']) {
      const payload = `${rest}${piece.repeat(Math.max(1, Math.floor((limit - rest.length) / piece.length)))}`;
      const asked = { name: `${field} of ${piece}`, url, payload };
      const all = { ...headers, 'content-type': contentType };
      problems.push(...(await tried('POST', { ...asked, headers: all })).problems);
    }
  }
  return problems;
}
