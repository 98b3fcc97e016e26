import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { APP } from '../../../dev/sandbox/graph/app-subscriptions.ts';
import { startUpstreamServer } from '../../../dev/sandbox/upstream-server.ts';
import { runSetupStep } from '../../../src/features/setup-links/run-set-up.ts';
import { setupRowId } from '../../../src/features/setup-links/setup-links.ts';
import type { StepTools } from '../../../src/features/setup-links/step-kit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { openGraphClient } from '../../../src/platform/graph/graph-client.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { freePort } from '../../acceptance/support/free-ports.ts';
import { type ApiProcess, startApiProcess } from '../../support/application-process.ts';
import { drainInbox } from '../../support/take-in.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { createTestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { addPlatformKey, fresh } from '../api/provisioning/platform-client.ts';
import { dialogIn, inPublicWords, PRODUCT, passDialog, RETURNS } from './setup-world.ts';

/** The API is killed while the browser comes back from the dialog, before and after upstream has taken the code. */

type Moment = 'before upstream has the code' | 'after upstream took the code';

let api: ApiProcess;
let database: Database;
let tools: StepTools;
let settings: Record<string, string>;
let origin: string;
let authorization: string;
const closes: (() => Promise<unknown>)[] = [];
/** Kills the API at this moment of the exchange, and answers nothing. */
const killAt: { moment: Moment | null } = { moment: null };
let exchanges: number[] = [];

beforeAll(async () => {
  const store = await createTestDatabase(20);
  const port = await freePort();
  origin = `http://127.0.0.1:${port}`;
  const startedAtMs = Date.now();
  const sandbox = await startUpstreamServer({
    host: '127.0.0.1',
    port: 0,
    appSecret: 'test-app-secret',
    verifyToken: 'test-verify-token',
    ingressUrl: origin,
    // A restart takes as long as it takes: no code expires.
    now: () => startedAtMs,
  });
  const between = createServer((request, response) => void pass(sandbox.url, request, response));
  between.listen(0, '127.0.0.1');
  await once(between, 'listening');
  settings = testSettings(store.url, {
    HELIOGRAPH_PUBLIC_URL: origin,
    HELIOGRAPH_UPSTREAM_GRAPH_URL: `http://127.0.0.1:${(between.address() as AddressInfo).port}`,
    HELIOGRAPH_UPSTREAM_APP_ID: APP.id,
    HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID: '990000000000001',
    HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: PRODUCT,
  });
  ({ authorization } = await addPlatformKey(store.database));
  ({ database } = store);
  const config = loadConfig(settings);
  const graph = openGraphClient(config);
  tools = {
    database,
    secretBox: testSecretBox,
    graph,
    signup: config.upstream.signup,
    callback: { callbackUrl: `${origin}/upstream/webhook`, verifyToken: 'test-verify-token' },
    selfCheck: async () => ({ problem: null, isSure: true, attention: [] }),
  };
  api = await startApiProcess(settings, String(port));
  closes.push(
    () => api.kill(),
    () => graph.close(),
    async () => {
      between.closeAllConnections();
      between.close();
    },
    () => sandbox.close(),
    () => store.close(),
  );
});
beforeEach(() => {
  exchanges = [];
});
afterAll(async () => {
  for (const close of closes) await close();
});

/** Between Heliograph and upstream. */
async function pass(upstreamUrl: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const isExchange = request.url?.includes('/oauth/access_token') === true;
  if (isExchange && killAt.moment === 'before upstream has the code') return await api.kill();
  const { method = 'GET', headers } = request;
  const { host: _, 'content-length': __, connection: ___, 'transfer-encoding': ____, ...kept } = headers;
  const answer = await fetch(`${upstreamUrl}${request.url}`, {
    method,
    redirect: 'manual',
    headers: Object.entries(kept).map(([name, value]): [string, string] => [name, String(value)]),
    ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
  });
  const text = await answer.text();
  if (isExchange) exchanges.push(answer.status);
  if (isExchange && killAt.moment === 'after upstream took the code') return await api.kill();
  const [type, location] = ['content-type', 'location'].map((name) => answer.headers.get(name));
  response.writeHead(answer.status, { ...(type && { 'content-type': type }), ...(location && { location }) });
  response.end(text);
}

async function ask(method: string, path: string, body?: object): Promise<{ id: string; url: string }> {
  const headers = { authorization, ...(body && { 'content-type': 'application/json' }) };
  const answer = await fetch(`${origin}/api/platform${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as { id: string; url: string };
}

/** A customer's browser, with the cookie of the link. */
function openCustomer() {
  let cookie = '';
  return async (path: string, form?: object) => {
    const answer = await fetch(`${origin}${path}`, {
      redirect: 'manual',
      headers: { cookie, origin: 'null' },
      ...(form && { method: 'POST', body: new URLSearchParams({ ...form }) }),
    });
    cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? cookie;
    const body = await answer.text();
    return inPublicWords({ body, location: answer.headers.get('location') ?? '' });
  };
}

async function linkInDialog() {
  const { name } = fresh();
  await ask('PUT', `/tenants/${name}`, { businessName: 'Fixture Store' });
  const { id, url } = await ask('POST', `/tenants/${name}/setup-links`, RETURNS);
  const go = openCustomer();
  const { body } = await go(new URL(url).pathname, {});
  const now = async () => await ask('GET', `/tenants/${name}/setup-links/${id}`);
  const back = await passDialog(dialogIn(body), 'finish');
  // As a worker does: what upstream reported is taken in.
  await drainInbox(database);
  return { id, go, now, back };
}

/** As a worker does. */
async function connects(id: string): Promise<void> {
  for (let end: string | null = null; end === null; ) ({ end } = await runSetupStep(tools, setupRowId(id)));
}

/** The browser comes back, and the process dies over it. */
async function killedWhile(moment: Moment, go: ReturnType<typeof openCustomer>, back: string): Promise<void> {
  killAt.moment = moment;
  await expect(go(back)).rejects.toThrow();
  killAt.moment = null;
  api = await startApiProcess(settings, new URL(origin).port);
}

test('killed before upstream has the code: the browser loads the page again, and the number is connected', async () => {
  const { id, go, back, now } = await linkInDialog();
  await killedWhile('before upstream has the code', go, back);
  const { location } = await go(back);
  await connects(id);
  expect(await now()).toMatchObject({ state: 'done', failure: null });
  expect((await go(location)).body).toContain('Your number is connected');
  expect(exchanges).toEqual([200]);
});

test('killed after upstream took the code: the code is not taken twice, the link says what happened, and the customer begins again', async () => {
  const { id, go, back, now } = await linkInDialog();
  await killedWhile('after upstream took the code', go, back);
  // Nobody loads the page again: upstream's webhook tells that the dialog was finished.
  expect(await now()).toMatchObject({ state: 'started', failure: { code: 'code_lost', retryable: true } });
  const { location } = await go(back);
  expect(await now()).toMatchObject({ state: 'failed', failure: { code: 'code_expired', retryable: true } });
  expect(exchanges).toEqual([200, 400]);
  expect((await go(location)).body).toContain('Start again at Meta');
  const again = await go(`/setup/links/${id}/start`, {});
  const { location: page } = await go(await passDialog(dialogIn(again.body), 'finish'));
  await connects(id);
  expect(await now()).toMatchObject({ state: 'done', failure: null });
  expect((await go(page)).body).toContain('Your number is connected');
  expect(exchanges).toEqual([200, 400, 200]);
});
