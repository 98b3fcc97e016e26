import { describe, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { freshTenant } from '../../../support/test-accounts.ts';
import { startTestApi } from '../../api/api-harness.ts';
import { addUser, openBrowser, type PortalBrowser } from '../portal-browser.ts';
import {
  api,
  atProvider,
  CALLBACK,
  invite,
  joinedMember,
  joinIn,
  person,
  signInAtProvider,
  tenant,
  useOidcProvider,
  users,
} from './oidc-provider.ts';

useOidcProvider();

describe('somebody who comes from the provider', () => {
  test('joins by a pending invitation after a question, without password, and is the same user the next time', async () => {
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
    const taken = await addUser(api, {
      email: 'boss@bazaar.example',
      role: 'admin',
      tenantId: tenant.tenantId,
    });
    person('boss', 'boss@bazaar.example');
    const stranger = openBrowser(api.app);
    expect((await signInAtProvider(stranger, 'boss')).answer.statusCode).toBe(422);
    expect(stranger.cookies.has('__Host-heliograph')).toBe(false);
    const other = await freshTenant(api.database, 'Fixture Bazaar');
    await invite('boss@bazaar.example', other);
    const owner = openBrowser(api.app);
    await signInAtProvider(owner, 'boss');
    await joinIn(owner, 'Fixture Bazaar');
    expect((await owner.get('/portal')).headers.location).toBe(`/portal/w/${other.wabaId}`);
    expect((await owner.get(`/portal/w/${tenant.wabaId}`)).statusCode).toBe(404);
    expect((await taken.get(`/portal/w/${other.wabaId}`)).statusCode).toBe(404);
  });

  test('whom several tenants invited joins the one that he chooses, and later the other', async () => {
    person('wanted', 'wanted@store.example');
    await invite('wanted@store.example');
    const other = await freshTenant(api.database, 'Fixture Bazaar');
    await invite('wanted@store.example', other);
    const browser = openBrowser(api.app);
    await signInAtProvider(browser, 'wanted');
    await joinIn(browser, 'Fixture Store');
    expect((await browser.get('/portal')).headers.location).toBe(`/portal/w/${tenant.wabaId}`);
    expect((await browser.get(`/portal/w/${other.wabaId}`)).statusCode).toBe(404);
    const again = openBrowser(api.app);
    expect((await signInAtProvider(again, 'wanted')).answer.headers.location).toBe('/portal/oidc/join');
    // Not now.
    expect((await again.get('/portal')).headers.location).toBe(`/portal/w/${tenant.wabaId}`);
    await joinIn(again, 'Fixture Bazaar');
    expect((await again.get('/portal')).headers.location).toBe(`/portal/w/${other.wabaId}`);
    expect(await users('wanted@store.example')).toHaveLength(2);
    expect(
      await query(api.database, 'select from users where email = :email', { email: 'wanted@store.example' }),
    ).toHaveLength(1);
  });

  test.each([
    ['whom nobody invited', 'stranger', 'stranger@store.example', true],
    ['who has not shown to own the address', 'liar', 'ravi@store.example', false],
    [
      'who has the address of a user who was somebody else there before',
      'heir',
      'holder@store.example',
      true,
    ],
  ])('%s is not let in, and nobody is made', async (_name, subject, email, isVerified) => {
    if (!isVerified) await invite(email);
    if (subject === 'heir') await joinedMember('holder');
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
      'select id from invitations where email = :email',
      { email: 'victim@store.example' },
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
