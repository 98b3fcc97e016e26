import { describe, expect, test } from 'vitest';
import { makePasswordLink } from '../../../../src/features/users/password-links.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser, openBrowser, PASSWORD, type PortalBrowser, signInWith } from '../portal-browser.ts';
import {
  AUTHORITY,
  api,
  atProvider,
  joinedMember,
  person,
  signInAtProvider,
  tenant,
  useOidcProvider,
} from './oidc-provider.ts';

useOidcProvider();

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
    const browser = await addUser(api, {
      email: 'ravi@store.example',
      role: 'admin',
      tenantId: tenant.tenantId,
    });
    person('ravi', 'ravi@home.example');
    expect((await linked(browser, 'ravi', 'not his password')).statusCode).toBe(422);
    expect((await linked(browser, 'ravi')).headers.location).toBe('/portal/account?done=linked');
    const account = await browser.get('/portal/account');
    expect(account.body).toContain('You can sign in to this account with your identity provider.');
    expect(await markupProblems(account.body)).toEqual([]);
    const elsewhere = openBrowser(api.app);
    await signInAtProvider(elsewhere, 'ravi');
    expect((await elsewhere.get(`/portal/w/${tenant.wabaId}/users`)).statusCode).toBe(200);
    expect((await browser.post('/portal/account/identity/unlink', { own: PASSWORD })).statusCode).toBe(303);
    expect((await signInAtProvider(openBrowser(api.app), 'ravi')).answer.statusCode).toBe(422);
  });

  test('is not connected to whoever signs in to another account, nor in another session', async () => {
    const browser = await addUser(api, {
      email: 'kim@store.example',
      role: 'member',
      tenantId: tenant.tenantId,
    });
    await joinedMember('asha');
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
    await addUser(api, { email, role: 'member', tenantId: tenant.tenantId });
    const [user] = await query<{ id: string }>(api.database, 'select id from users where email = :email', {
      email,
    });
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
    const admin = await addUser(api, {
      email: 'boss@store.example',
      role: 'admin',
      tenantId: tenant.tenantId,
    });
    await joinedMember('tara');
    const [tara] = await query<{ id: string }>(api.database, 'select id from users where email = :email', {
      email: 'tara@store.example',
    });
    await admin.get('/portal/account');
    const refused = await admin.post(`/portal/w/${tenant.wabaId}/users/${tara?.id}/password-link`);
    expect(refused.statusCode).toBe(422);
    expect(refused.body).toContain('only an operator can make such a link');
  });
});

describe('a proof of who is there', () => {
  test('is another sign-in at the provider, by the same person, for those who have no password', async () => {
    await joinedMember('omar');
    const browser = await joinedMember('lena');
    await execute(
      api.database,
      `update user_sessions set proven_at = now() - interval '11 minutes'
        where user_id = (select id from users where email = 'lena@store.example')`,
    );
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
    const other = await again('omar');
    expect([other.statusCode, other.body.includes('another person')]).toEqual([422, true]);
    expect((await confirm()).statusCode).toBe(403);
    expect((await again('lena')).headers.location).toBe('/portal/confirmed');
    expect(await markupProblems((await browser.get('/portal/confirmed')).body)).toEqual([]);
    expect((await confirm()).headers.location).toBe('/portal/account');
  });
});
