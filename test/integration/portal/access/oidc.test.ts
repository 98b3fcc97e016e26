import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SYSTEM } from '../../../../src/accounts/audit.ts';
import { inviteUser } from '../../../../src/accounts/invitations.ts';
import { loadConfig } from '../../../../src/config/config.ts';
import { query } from '../../../../src/database/sql.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { PUBLIC_URL, startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { addUser, openBrowser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

const CALLBACK = `${PUBLIC_URL}/portal/oidc/callback`;

/** What the provider says of the people who sign in there, by their subject. */
const PEOPLE = new Map<string, { email: string; email_verified: boolean; name: string }>();

let issuer: string;
let server: Server;
let api: TestApi;
let close: () => Promise<void>;
let tenantId: string;

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
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    pkce: { required: () => true },
    cookies: { keys: ['test'] },
    features: { devInteractions: { enabled: true } },
    findAccount: async (_context, sub) => ({
      accountId: sub,
      claims: async () => ({ sub, ...PEOPLE.get(sub) }),
    }),
  });
  server.on('request', provider.callback());
}

beforeAll(async () => {
  await startProvider();
  api = await startTestApi(
    async (databaseUrl) => ({
      config: loadConfig(
        testSettings(databaseUrl, {
          HELIOGRAPH_PUBLIC_URL: PUBLIC_URL,
          HELIOGRAPH_OIDC_ISSUER: issuer,
          HELIOGRAPH_OIDC_CLIENT_ID: 'portal',
          HELIOGRAPH_OIDC_CLIENT_SECRET: 'a-secret-of-the-portal',
        }),
      ),
    }),
    (closeApi) => {
      close = closeApi;
    },
  );
  tenantId = await tenantOf(api.database, WABA);
});
afterAll(async () => {
  await close();
  server.closeAllConnections();
  server.close();
});

/** Signs in at the provider as its pages want it, and returns the URL by which it sends the browser back. */
async function atProvider(start: string, subject: string): Promise<URL> {
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

async function signInAtProvider(browser: PortalBrowser, subject: string, next = '/portal') {
  const start = await browser.get(`/portal/oidc/start?next=${encodeURIComponent(next)}`);
  expect(start.statusCode).toBe(303);
  const back = await atProvider(String(start.headers.location), subject);
  return { back, answer: await browser.get(`${back.pathname}${back.search}`) };
}

const person = (subject: string, email: string, isVerified = true) =>
  PEOPLE.set(subject, { email, email_verified: isVerified, name: `Person ${subject}` });
const invite = (email: string, tenant = tenantId) =>
  inviteUser(
    { database: api.database },
    { actor: SYSTEM, tenantId: null, userId: null },
    { email, role: 'member', tenantId: tenant },
  );
const users = (email: string) => query(api.database, 'select name, role from users where email = ?', [email]);

describe('somebody who comes from the provider', () => {
  test('with an open invitation becomes a user without password, and is the same user the next time', async () => {
    person('asha', 'Asha@Store.example');
    await invite('asha@store.example');
    const browser = openBrowser(api.app);
    const { answer } = await signInAtProvider(browser, 'asha', '/portal/account');
    expect(answer.headers.location).toBe('/portal/account');
    const account = await browser.get('/portal/account');
    expect(account.body).toContain('asha@store.example');
    expect(account.body).toContain('no password here');
    expect(await users('asha@store.example')).toEqual([{ name: 'Person asha', role: 'member' }]);
    person('asha', 'renamed@store.example');
    const again = openBrowser(api.app);
    await signInAtProvider(again, 'asha');
    expect((await again.get('/portal/account')).body).toContain('asha@store.example');
    expect(await users('renamed@store.example')).toEqual([]);
  });

  test('with the address of a user is that user', async () => {
    await addUser(api, { email: 'ravi@store.example', role: 'admin', tenantId });
    person('ravi', 'ravi@store.example');
    const browser = openBrowser(api.app);
    await signInAtProvider(browser, 'ravi');
    expect((await browser.get(`/portal/w/${WABA}/users`)).statusCode).toBe(200);
  });

  test.each([
    ['whom nobody invited', 'stranger', 'stranger@store.example', true],
    ['who has not shown to own the address', 'liar', 'ravi@store.example', false],
    ['who has the address of a user who was somebody else there before', 'heir', 'ravi@store.example', true],
    ['whom several tenants invited', 'wanted', 'wanted@store.example', true],
  ])('%s is not let in, and nobody is made', async (_name, subject, email, isVerified) => {
    if (subject === 'wanted') {
      await invite(email);
      await invite(email, await tenantOf(api.database, '900000000000202'));
    }
    person(subject, email, isVerified);
    const before = await users(email);
    const browser = openBrowser(api.app);
    const { answer } = await signInAtProvider(browser, subject);
    expect(answer.statusCode).toBe(422);
    expect(answer.body).toContain('nobody has invited this e-mail address');
    expect(browser.cookies.has('__Host-heliograph')).toBe(false);
    expect(await users(email)).toEqual(before);
  });
});

describe('the way back is refused', () => {
  const refused = async (browser: PortalBrowser, path: string) => {
    const answer = await browser.get(path);
    expect(answer.statusCode).toBe(400);
    expect(answer.body).toContain('Sign-in did not work');
    expect(browser.cookies.has('__Host-heliograph')).toBe(false);
  };

  test('a second time, in another browser, and with another state', async () => {
    person('mira', 'mira@store.example');
    await invite('mira@store.example');
    const browser = openBrowser(api.app);
    const start = await browser.get('/portal/oidc/start');
    const kept = browser.cookies.get('__Host-heliograph-oidc') ?? '';
    const back = await atProvider(String(start.headers.location), 'mira');
    const path = `${back.pathname}${back.search}`;
    await refused(openBrowser(api.app), path);
    const other = openBrowser(api.app);
    await other.get('/portal/oidc/start');
    await refused(other, path);
    const changed = openBrowser(api.app);
    changed.cookies.set('__Host-heliograph-oidc', kept);
    await refused(changed, path.replace(/state=[^&]+/, 'state=other'));
    expect((await browser.get(path)).statusCode).toBe(303);
    const repeated = openBrowser(api.app);
    repeated.cookies.set('__Host-heliograph-oidc', kept);
    await refused(repeated, path);
  });

  test.each(['', '?code=x', '?code=x&state=y', '?error=access_denied&error_description=evil%3Cb%3E'])(
    'with %j',
    async (search) => {
      const browser = openBrowser(api.app);
      await browser.get('/portal/oidc/start');
      const answer = await browser.get(`/portal/oidc/callback${search}`);
      expect(answer.statusCode).toBe(400);
      expect(answer.body).not.toContain('evil');
      await refused(openBrowser(api.app), `/portal/oidc/callback${search}`);
    },
  );
});

test('the way there carries PKCE, state and nonce, and its secrets stay in a sealed cookie', async () => {
  const browser = openBrowser(api.app);
  const answer = await browser.get('/portal/oidc/start');
  const { searchParams } = new URL(String(answer.headers.location));
  expect(searchParams.get('code_challenge_method')).toBe('S256');
  expect(searchParams.get('redirect_uri')).toBe(CALLBACK);
  for (const name of ['state', 'nonce', 'code_challenge']) {
    expect(searchParams.get(name)).toMatch(/^[\w-]{43}$/);
    expect(decodeURIComponent(browser.cookies.get('__Host-heliograph-oidc') ?? '')).not.toContain(
      searchParams.get(name),
    );
  }
});

test('the sign-in page offers the provider only where there is one', async () => {
  expect((await openBrowser(api.app).get('/portal/sign-in')).body).toContain('/portal/oidc/start');
  const without = await startTestApi();
  expect((await openBrowser(without.app).get('/portal/sign-in')).body).not.toContain('/portal/oidc/start');
  expect((await openBrowser(without.app).get('/portal/oidc/start')).statusCode).toBe(404);
});
