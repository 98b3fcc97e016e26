import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { inviteUser } from '../../../../src/users/invitations.ts';
import { hashPassword } from '../../../../src/users/password-hash.ts';
import { makePasswordLink } from '../../../../src/users/password-links.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { OTHER_WABA, PUBLIC_URL, startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import {
  addUser,
  openBrowser,
  PASSWORD,
  type PortalBrowser,
  signInWith,
  tenantOf,
} from '../portal-browser.ts';

const CALLBACK = `${PUBLIC_URL}/portal/oidc/callback`;

/** What the provider says of the people who sign in there, by their subject. */
const PEOPLE = new Map<string, { email: string; email_verified: boolean; name: string; amr?: string[] }>();

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
const startApi = (settings: Record<string, string> = {}, atEnd?: (close: () => Promise<void>) => void) =>
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

beforeAll(async () => {
  await startProvider();
  api = await startApi({}, (closeApi) => {
    close = closeApi;
  });
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
const AUTHORITY = { actor: SYSTEM, tenantId: null, userId: null };
const invite = (email: string, tenant = tenantId, { database } = api) =>
  inviteUser({ database }, AUTHORITY, { email, role: 'member', tenantId: tenant });
const users = (email: string) =>
  query(
    api.database,
    'select u.name, m.role from users u left join memberships m on m.user_id = u.id where email = ? order by u.id',
    [email],
  );

/** Answers the question after the sign-in at the provider: which invitation to accept. */
async function joinIn(browser: PortalBrowser, name: string) {
  const question = await browser.get('/portal/oidc/join');
  expect(await markupProblems(question.body)).toEqual([]);
  const [, invitation = ''] = new RegExp(`value="(\\d+)">Join ${name}<`).exec(question.body) ?? [];
  return await browser.post('/portal/oidc/join', { invitation });
}

describe('somebody who comes from the provider', () => {
  test('joins by an open invitation after a question, without password, and is the same user the next time', async () => {
    person('asha', 'Asha@Store.example');
    await invite('asha@store.example');
    const browser = openBrowser(api.app);
    const { answer } = await signInAtProvider(browser, 'asha', '/portal/account');
    expect(answer.headers.location).toBe('/portal/oidc/join');
    expect(browser.cookies.has('__Host-heliograph')).toBe(false);
    expect(await users('asha@store.example')).toEqual([]);
    expect((await joinIn(browser, 'Fixture Store')).headers.location).toBe('/portal');
    const account = await browser.get('/portal/account');
    expect(account.body).toContain('asha@store.example');
    expect(account.body).toContain('no password here');
    expect(await users('asha@store.example')).toEqual([{ name: 'Person asha', role: 'member' }]);
    person('asha', 'renamed@store.example');
    const again = openBrowser(api.app);
    expect((await signInAtProvider(again, 'asha', '/portal/account')).answer.headers.location).toBe(
      '/portal/account',
    );
    expect((await again.get('/portal/account')).body).toContain('asha@store.example');
    expect(await users('renamed@store.example')).toEqual([]);
  });

  test('never lands in an account whose password somebody else knows, whatever its address', async () => {
    const taken = await addUser(api, { email: 'boss@bazaar.example', role: 'admin', tenantId });
    person('boss', 'boss@bazaar.example');
    const stranger = openBrowser(api.app);
    expect((await signInAtProvider(stranger, 'boss')).answer.statusCode).toBe(422);
    expect(stranger.cookies.has('__Host-heliograph')).toBe(false);
    const other = await tenantOf(api.database, OTHER_WABA);
    await invite('boss@bazaar.example', other);
    const owner = openBrowser(api.app);
    await signInAtProvider(owner, 'boss');
    await joinIn(owner, 'Fixture Bazaar');
    expect((await owner.get('/portal')).headers.location).toBe(`/portal/w/${OTHER_WABA}`);
    expect((await owner.get(`/portal/w/${WABA}`)).statusCode).toBe(404);
    expect((await taken.get(`/portal/w/${OTHER_WABA}`)).statusCode).toBe(404);
  });

  test('whom several tenants invited joins the one that he chooses, and later the other', async () => {
    person('wanted', 'wanted@store.example');
    await invite('wanted@store.example');
    await invite('wanted@store.example', await tenantOf(api.database, OTHER_WABA));
    const browser = openBrowser(api.app);
    await signInAtProvider(browser, 'wanted');
    await joinIn(browser, 'Fixture Store');
    expect((await browser.get('/portal')).headers.location).toBe(`/portal/w/${WABA}`);
    expect((await browser.get(`/portal/w/${OTHER_WABA}`)).statusCode).toBe(404);
    const again = openBrowser(api.app);
    expect((await signInAtProvider(again, 'wanted')).answer.headers.location).toBe('/portal/oidc/join');
    // Not now.
    expect((await again.get('/portal')).headers.location).toBe(`/portal/w/${WABA}`);
    await joinIn(again, 'Fixture Bazaar');
    expect((await again.get('/portal')).headers.location).toBe(`/portal/w/${OTHER_WABA}`);
    expect(await users('wanted@store.example')).toHaveLength(2);
    expect(
      await query(api.database, 'select from users where email = ?', ['wanted@store.example']),
    ).toHaveLength(1);
  });

  test.each([
    ['whom nobody invited', 'stranger', 'stranger@store.example', true],
    ['who has not shown to own the address', 'liar', 'ravi@store.example', false],
    ['who has the address of a user who was somebody else there before', 'heir', 'asha@store.example', true],
  ])('%s is not let in, and nobody is made', async (_name, subject, email, isVerified) => {
    if (!isVerified) await invite(email);
    person(subject, email, isVerified);
    const before = await users(email);
    const browser = openBrowser(api.app);
    const { answer } = await signInAtProvider(browser, subject);
    expect(answer.statusCode).toBe(422);
    expect(answer.body).toContain('this e-mail address has no invitation here');
    expect(browser.cookies.has('__Host-heliograph')).toBe(false);
    expect(await users(email)).toEqual(before);
  });

  test('joins nothing that the question did not offer, nor without having come from there', async () => {
    person('mallory', 'mallory@store.example');
    await invite('mallory@store.example');
    await invite('victim@store.example');
    const [foreign] = await query<{ id: string }>(
      api.database,
      'select id from invitations where email = ?',
      ['victim@store.example'],
    );
    const browser = openBrowser(api.app);
    await signInAtProvider(browser, 'mallory');
    await browser.get('/portal/oidc/join');
    expect((await browser.post('/portal/oidc/join', { invitation: foreign?.id ?? '' })).statusCode).toBe(404);
    const without = openBrowser(api.app);
    await without.get('/portal/sign-in');
    without.cookies.set('__Host-heliograph-proven', 'made up');
    expect((await without.post('/portal/oidc/join', { invitation: foreign?.id ?? '' })).statusCode).toBe(400);
    expect(await users('victim@store.example')).toEqual([]);
  });
});

describe('an account with a password', () => {
  const linked = async (browser: PortalBrowser, subject: string, own = PASSWORD) => {
    await browser.get('/portal/account');
    const page = await browser.post('/portal/account/identity/link', { own });
    const [, start = ''] = /href="(http:[^"]+)">Continue/.exec(page.body) ?? [];
    if (start === '') return page;
    const back = await atProvider(start.replaceAll('&amp;', '&'), subject);
    return await browser.get(`${back.pathname}${back.search}`);
  };

  test('is signed in to by the provider once its holder has connected it, and until he ends that', async () => {
    const browser = await addUser(api, { email: 'ravi@store.example', role: 'admin', tenantId });
    person('ravi', 'ravi@home.example');
    expect((await linked(browser, 'ravi', 'not his password')).statusCode).toBe(422);
    expect((await linked(browser, 'ravi')).headers.location).toBe('/portal/account?done=linked');
    const account = await browser.get('/portal/account');
    expect(account.body).toContain('You can sign in to this account with your identity provider.');
    expect(await markupProblems(account.body)).toEqual([]);
    const elsewhere = openBrowser(api.app);
    await signInAtProvider(elsewhere, 'ravi');
    expect((await elsewhere.get(`/portal/w/${WABA}/users`)).statusCode).toBe(200);
    expect((await browser.post('/portal/account/identity/unlink', { own: PASSWORD })).statusCode).toBe(303);
    expect((await signInAtProvider(openBrowser(api.app), 'ravi')).answer.statusCode).toBe(422);
  });

  test('is not connected to whoever signs in to another account, nor in another session', async () => {
    const browser = await addUser(api, { email: 'kim@store.example', role: 'member', tenantId });
    expect((await linked(browser, 'asha')).statusCode).toBe(422);
    person('kim', 'kim@store.example');
    await browser.get('/portal/account');
    const page = await browser.post('/portal/account/identity/link', { own: PASSWORD });
    const [, start = ''] = /href="(http:[^"]+)">Continue/.exec(page.body) ?? [];
    const back = await atProvider(start.replaceAll('&amp;', '&'), 'kim');
    await browser.get('/portal/account');
    await browser.post('/portal/sign-out');
    expect((await browser.get(`${back.pathname}${back.search}`)).statusCode).toBe(400);
    expect(await query(api.database, `select from user_identities where subject = 'kim'`)).toEqual([]);
  });

  test('is not connected by the maker of a link for its password, who has changed it since either', async () => {
    const email = 'mina@store.example';
    await addUser(api, { email, role: 'member', tenantId });
    const [user] = await query<{ id: string }>(api.database, 'select id from users where email = ?', [email]);
    const maker = { ...AUTHORITY, actor: { ...SYSTEM, name: 'maker@store.example' } };
    const { path } = await makePasswordLink({ database: api.database }, maker, user?.id ?? '');
    const thief = openBrowser(api.app);
    await thief.get(path);
    await thief.post(path, { password: 'chosen by the maker' });
    await signInWith(thief, email, 'chosen by the maker');
    person('thief', 'thief@home.example');
    const identities = () => query(api.database, `select from user_identities where subject = 'thief'`);
    const refused = await linked(thief, 'thief', 'chosen by the maker');
    expect([refused.statusCode, refused.body.includes('maker@store.example')]).toEqual([422, true]);
    const change = { current: 'chosen by the maker', password: 'another of the maker' };
    expect((await thief.post('/portal/account/password', change)).statusCode).toBe(303);
    expect((await linked(thief, 'thief', 'another of the maker')).statusCode).toBe(422);
    expect(await identities()).toEqual([]);
  });

  test('of a member who signs in at the provider gets no password link from a tenant', async () => {
    const admin = await addUser(api, { email: 'boss@store.example', role: 'admin', tenantId });
    const [asha] = await query<{ id: string }>(api.database, 'select id from users where email = ?', [
      'asha@store.example',
    ]);
    await admin.get('/portal/account');
    const refused = await admin.post(`/portal/w/${WABA}/users/${asha?.id}/password-link`);
    expect(refused.statusCode).toBe(422);
    expect(refused.body).toContain('only an operator can make such a link');
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

describe('a proof of who is there', () => {
  const stale = () =>
    execute(api.database, `update user_sessions set proven_at = now() - interval '11 minutes'`);

  test('is another sign-in at the provider, by the same person, for those who have no password', async () => {
    person('lena', 'lena@store.example');
    await invite('lena@store.example');
    const browser = openBrowser(api.app);
    await signInAtProvider(browser, 'lena');
    await joinIn(browser, 'Fixture Store');
    await stale();
    await browser.get('/portal/account');
    const confirm = () => browser.post('/portal/confirm', { next: '/portal/account' });
    const question = await confirm();
    expect(question.statusCode).toBe(403);
    expect(question.body).not.toContain('type="password"');
    expect(await markupProblems(question.body)).toEqual([]);
    const [, link = ''] = /href="(\/portal\/oidc\/start[^"]+)"/.exec(question.body) ?? [];
    const again = async (subject: string) => {
      const start = await browser.get(link.replaceAll('&amp;', '&'));
      const { searchParams } = new URL(String(start.headers.location));
      expect([searchParams.get('prompt'), searchParams.get('max_age')]).toEqual(['login', '0']);
      const back = await atProvider(String(start.headers.location), subject);
      return await browser.get(`${back.pathname}${back.search}`);
    };
    const other = await again('asha');
    expect([other.statusCode, other.body.includes('another person')]).toEqual([422, true]);
    expect((await confirm()).statusCode).toBe(403);
    expect((await again('lena')).headers.location).toBe('/portal/confirmed');
    expect(await markupProblems((await browser.get('/portal/confirmed')).body)).toEqual([]);
    expect((await confirm()).headers.location).toBe('/portal/account');
  });
});

describe('where the provider is the only way in', () => {
  test('no password opens anything, and invitations are accepted there', async () => {
    const strict = await startApi({ HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN: 'false' });
    const { database } = strict;
    const tenant = await tenantOf(database, WABA);
    const browser = openBrowser(strict.app);
    const page = await browser.get('/portal/sign-in');
    expect(page.body).not.toContain('type="password"');
    expect(await markupProblems(page.body)).toEqual([]);
    expect((await browser.get('/portal/set-up')).statusCode).toBe(404);
    const { path } = await invite('nora@store.example', tenant, strict);
    const link = await browser.get(path);
    expect(link.body).toContain('Sign in with your identity provider');
    expect(link.body).not.toContain('type="password"');
    expect(await markupProblems(link.body)).toEqual([]);
    person('nora', 'nora@store.example');
    await signInAtProvider(browser, 'nora');
    // The token of the form that asks whether to join.
    await browser.get('/portal/oidc/join');
    expect((await browser.post(path, { name: 'Nora', password: PASSWORD })).statusCode).toBe(404);
    await joinIn(browser, 'Fixture Store');
    const account = await browser.get('/portal/account');
    expect(account.statusCode).toBe(200);
    expect(account.body).not.toContain('Password');
    const [user] = await query<{ id: string }>(database, 'select id from users');
    const passwordLink = await makePasswordLink({ database }, AUTHORITY, user?.id ?? '');
    expect((await openBrowser(strict.app).get(passwordLink.path)).statusCode).toBe(404);
    const names = strict.routes.map(({ method, url }) => `${method} ${url}`);
    for (const gone of [
      'POST /portal/sign-in',
      '/password-link',
      '/portal/account/password',
      '/identity/link',
      '/portal/set-up',
    ]) {
      expect(names.filter((name) => name.endsWith(gone))).toEqual([]);
    }
    // A password from before the setting changed proves nothing either.
    const [old, aged] = [await hashPassword(PASSWORD), `proven_at = now() - interval '11 minutes'`];
    await execute(database, `update users set password_hash = ?`, [old]);
    await execute(database, `update user_sessions set ${aged}`);
    const fields = { next: '/portal/account', 'proof-of-presence': PASSWORD };
    const confirmed = await browser.post('/portal/confirm', fields);
    expect([confirmed.statusCode, confirmed.body.includes('Passwords are switched off')]).toEqual([
      422,
      true,
    ]);
    // What began with a password before the setting changed ends.
    await execute(database, `update user_sessions set begun_by = 'password'`);
    expect((await browser.get('/portal/account')).headers.location).toMatch(/^\/portal\/sign-in/);
  });
});

describe('where all must have a second factor', () => {
  test('a person whose provider vouches for it is let in, and all others set one up', async () => {
    const strict = await startApi({ HELIOGRAPH_PORTAL_SECOND_FACTOR: 'all' });
    const tenant = await tenantOf(strict.database, WABA);
    const start = async (subject: string, amr: string[]) => {
      const email = `${subject}@store.example`;
      PEOPLE.set(subject, { email, email_verified: true, name: subject, amr });
      await invite(email, tenant, strict);
      const browser = openBrowser(strict.app);
      await signInAtProvider(browser, subject);
      await joinIn(browser, 'Fixture Store');
      return (await browser.get('/portal/account')).headers.location;
    };
    expect(await start('strong', ['pwd', 'mfa'])).toBeUndefined();
    expect(await start('weak', ['pwd'])).toMatch(/^\/portal\/account\/second-factor/);
  });
});
