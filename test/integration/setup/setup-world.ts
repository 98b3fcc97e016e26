import { expect, onTestFinished } from 'vitest';
import type { FaultRequest } from '../../../dev/sandbox/fault-register.ts';
import { APP } from '../../../dev/sandbox/graph/app-subscriptions.ts';
import type { SignupOutcome } from '../../../dev/sandbox/signup-register.ts';
import type { LoggedRequest } from '../../../dev/sandbox/upstream-records.ts';
import { startUpstreamServer } from '../../../dev/sandbox/upstream-server.ts';
import { buildApp } from '../../../src/api/app.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { openLogger } from '../../../src/platform/logger.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import { freePort } from '../../acceptance/support/free-ports.ts';
import { TEMPORAL_AWAY } from '../../support/temporal-away.ts';
import { createTestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import type { TestApi } from '../api/api-harness.ts';
import { fresh, platformClient } from '../api/provisioning/platform-client.ts';
import { openBrowser, type PortalBrowser } from '../portal/portal-browser.ts';

export const PRODUCT = 'https://crm.example';
export const RETURNS = { successUrl: `${PRODUCT}/connected`, failureUrl: `${PRODUCT}/not-connected` };

export type SetupWorld = Awaited<ReturnType<typeof startSetupWorld>>;

/** API, sandbox and database of a test about set-up links; the worker is the test's own. */
export async function startSetupWorld(
  overrides: Record<string, string> = {},
  atEnd: (close: () => Promise<void>) => void = onTestFinished,
) {
  const store = await createTestDatabase(20);
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const clock = { aheadMs: 0 };
  const sandbox = await startUpstreamServer({
    host: '127.0.0.1',
    port: 0,
    appSecret: 'test-app-secret',
    verifyToken: 'test-verify-token',
    ingressUrl: origin,
    now: () => Date.now() + clock.aheadMs,
  });
  const settings = testSettings(store.url, {
    HELIOGRAPH_PUBLIC_URL: origin,
    HELIOGRAPH_UPSTREAM_GRAPH_URL: sandbox.url,
    HELIOGRAPH_UPSTREAM_APP_ID: APP.id,
    HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID: '990000000000001',
    HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: PRODUCT,
    HELIOGRAPH_ACCESS_LOG: 'requests',
    HELIOGRAPH_LOG_LEVEL: 'debug',
    ...overrides,
  });
  const config = loadConfig(settings);
  const lines: string[] = [];
  const logger = openLogger(config, 'api', { write: (line) => void lines.push(line) });
  const objectStore = openObjectStore(config.objectStore);
  const { database } = store;
  const app = buildApp({ config, database, objectStore, logger, temporal: TEMPORAL_AWAY });
  await app.listen({ host: '127.0.0.1', port });
  atEnd(async () => {
    await app.close();
    objectStore.close();
    await sandbox.close();
    await store.close();
  });
  const api: TestApi = { app, database, databaseUrl: store.url, routes: [] };
  const ask = await platformClient(api);
  const listOf = async <Item>(list: string) =>
    (await (await fetch(`${sandbox.url}/sandbox/${list}`)).json()) as { data: Item[] };
  return {
    ...{ api, app, database, origin, settings, lines, clock, ask, sandboxUrl: sandbox.url },
    addFault: async (fault: FaultRequest) => {
      const body = JSON.stringify(fault);
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${sandbox.url}/sandbox/faults`, { method: 'POST', body, headers });
      if (!answer.ok) throw new Error(await answer.text());
    },
    /** How often a fault was met, or null when there is none such. */
    hits: async (match: string): Promise<number | null> => {
      const { data } = await listOf<{ match: string; hits: number }>('faults');
      return data.find((fault) => fault.match === match)?.hits ?? null;
    },
    clearFaults: async () => void (await fetch(`${sandbox.url}/sandbox/faults`, { method: 'DELETE' })),
    /** What was asked of upstream: `POST /v26.0/82…/register 200`. */
    asked: async (): Promise<string[]> => {
      const { data } = await listOf<LoggedRequest>('requests');
      return data.map(({ method, path, status }) => `${method} ${path} ${status}`);
    },
    /** A tenant with a link, and how to see what became of it. */
    link: async (given: object = {}) => {
      const { name } = fresh();
      await ask('PUT', `/tenants/${name}`, { businessName: 'Fixture Store' });
      const made = await ask('POST', `/tenants/${name}/setup-links`, { ...RETURNS, ...given });
      if (made.status !== 201) throw new Error(JSON.stringify(made.body));
      const { id, url } = made.body as { id: string; url: string };
      const now = async () => (await ask('GET', `/tenants/${name}/setup-links/${id}`)).body;
      return { tenant: name, id, path: new URL(url).pathname, now };
    },
  };
}

/** A customer's browser; forms come from our own pages, which name no referrer. */
export function customerOf({ app, origin }: SetupWorld): PortalBrowser {
  const browser = openBrowser(app);
  const { host } = new URL(origin);
  return {
    ...browser,
    get: async (path, headers) => inPublicWords(await browser.get(path, { host, ...headers })),
    post: async (path, fields = '', headers) =>
      inPublicWords(await browser.post(path, fields, { host, origin: 'null', ...headers })),
  };
}

/** A page for customers calls the platform by the name that they know; codes are for the support and the product. */
export function inPublicWords<Answer extends { body: string }>(answer: Answer): Answer {
  const shown = answer.body.replaceAll(/<code>[^<]*<\/code>|href="[^"]*"/g, '');
  expect(shown).not.toMatch(/upstream/i);
  return answer;
}

/** Opens the link, presses its button and goes through the dialog. */
export async function goThrough(browser: PortalBrowser, path: string, outcome: SignupOutcome, wabaId = '') {
  await browser.get(path);
  const begun = await browser.post(path);
  const back = await passDialog(dialogIn(begun.body), outcome, wabaId);
  const returned = await browser.get(back);
  return { begun, back, returned, next: String(returned.headers.location ?? '') };
}

/** The customer in Meta's dialog: where it leads back to, as a path. */
export async function passDialog(dialogUrl: string, outcome: SignupOutcome, wabaId = ''): Promise<string> {
  const body = new URLSearchParams({ outcome, wabaId });
  const answer = await fetch(dialogUrl, { method: 'POST', body, redirect: 'manual' });
  const { pathname, search } = new URL(answer.headers.get('location') ?? 'none:');
  return pathname + search;
}

/** The address of the dialog on the page that leads there. */
export function dialogIn(body: string): string {
  const href = /href="([^"]*\/dialog\/oauth[^"]*)"/.exec(body)?.[1] ?? '';
  return href.replaceAll('&amp;', '&');
}
