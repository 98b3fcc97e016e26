import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { inviteUser } from '../../../../src/features/users/invitations.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { type FreshTenant, freshTenant } from '../../../support/test-accounts.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { PUBLIC_URL, startTestApi, type TestApi } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import { openBrowser, type PortalBrowser } from '../portal-browser.ts';

export const CALLBACK = `${PUBLIC_URL}/portal/oidc/callback`;

/** What the provider says of the people who sign in there, by their subject. */
export const PEOPLE = new Map<
  string,
  { email: string; email_verified: boolean; name: string; amr?: string[] }
>();

let issuer: string;

let server: Server;

export let api: TestApi;

let close: () => Promise<void>;

/** Of the test that runs. */
export let tenant: FreshTenant;

async function startProvider(): Promise<void> {
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'portal',
        client_secret: 'a-secret-of-the-portal',
        redirect_uris: [CALLBACK],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    claims: { openid: ['sub', 'amr'], email: ['email', 'email_verified'], profile: ['name'] },
    pkce: { required: () => true },
    cookies: { keys: ['test'] },
    features: { devInteractions: { enabled: true } },
    findAccount: async (_context, sub) => ({
      accountId: sub,
      claims: async () => ({ sub, ...PEOPLE.get(sub) }),
    }),
  });
  provider.on('interaction.ended', ({ oidc: { session } }) => {
    if (session !== undefined) session.amr = PEOPLE.get(session.accountId ?? '')?.amr;
  });
  server.on('request', provider.callback());
}

/** An API whose users may sign in at the provider. */
export const startApi = (
  settings: Record<string, string> = {},
  atEnd?: (close: () => Promise<void>) => void,
) =>
  startTestApi(
    async (databaseUrl) => ({
      config: loadConfig(
        testSettings(databaseUrl, {
          HELIOGRAPH_PUBLIC_URL: PUBLIC_URL,
          HELIOGRAPH_OIDC_ISSUER: issuer,
          HELIOGRAPH_OIDC_CLIENT_ID: 'portal',
          HELIOGRAPH_OIDC_CLIENT_SECRET: 'a-secret-of-the-portal',
          ...settings,
        }),
      ),
    }),
    atEnd,
  );

/** Signs in at the provider as its pages want it, and returns the URL by which it sends the browser back. */
export async function atProvider(start: string, subject: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = new URL(start);
  let form: Record<string, string> | null = null;
  for (let step = 0; step < 12; step += 1) {
    const answer: Response = await fetch(url, {
      redirect: 'manual',
      method: form === null ? 'GET' : 'POST',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form !== null && { body: new URLSearchParams(form) }),
    });
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const location = answer.headers.get('location');
    const page = await answer.text();
    if (location === null) {
      const [, prompt = ''] = /name="prompt" value="(\w+)"/.exec(page) ?? [];
      form = prompt === 'login' ? { prompt, login: subject, password: 'any' } : { prompt };
      continue;
    }
    form = null;
    url = new URL(location, url);
    if (url.origin === PUBLIC_URL) return url;
  }
  throw new Error('the provider did not send the browser back');
}

export async function signInAtProvider(browser: PortalBrowser, subject: string, next = '/portal') {
  const start = await browser.get(`/portal/oidc/start?next=${encodeURIComponent(next)}`);
  expect(start.statusCode).toBe(303);
  const back = await atProvider(String(start.headers.location), subject);
  return { back, answer: await browser.get(`${back.pathname}${back.search}`) };
}

export const person = (subject: string, email: string, isVerified = true) =>
  PEOPLE.set(subject, { email, email_verified: isVerified, name: `Person ${subject}` });

export const AUTHORITY = { actor: SYSTEM, tenantId: null, userId: null };

export const invite = (email: string, { tenantId } = tenant, { database } = api) =>
  inviteUser({ database }, AUTHORITY, { email, role: 'member', tenantId });

export const users = (email: string) =>
  query(
    api.database,
    'select u.name, m.role from users u left join memberships m on m.user_id = u.id where email = :email order by u.id',
    { email },
  );

/** Answers the question after the sign-in at the provider: which invitation to accept. */
export async function joinIn(browser: PortalBrowser, name: string) {
  const question = await browser.get('/portal/oidc/join');
  expect(await markupProblems(question.body)).toEqual([]);
  const [, invitation = ''] = new RegExp(`value="(\\d+)">Join ${name}<`).exec(question.body) ?? [];
  return await browser.post('/portal/oidc/join', { invitation });
}

/** Has somebody join the tenant of the test by the provider, without a password. */
export async function joinedMember(subject: string): Promise<PortalBrowser> {
  person(subject, `${subject}@store.example`);
  await invite(`${subject}@store.example`);
  const browser = openBrowser(api.app);
  await signInAtProvider(browser, subject);
  await joinIn(browser, 'Fixture Store');
  return browser;
}

/** A provider and an API that trusts it, for the tests of a file; each of them has a tenant that no other knows. */
export function useOidcProvider(): void {
  beforeAll(async () => {
    await startProvider();
    api = await startApi({}, (closeApi) => {
      close = closeApi;
    });
  });
  beforeEach(async () => {
    tenant = await freshTenant(api.database);
  });
  afterAll(async () => {
    await close();
    server.closeAllConnections();
    server.close();
  });
}
