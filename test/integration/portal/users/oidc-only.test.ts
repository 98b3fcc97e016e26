import { describe, expect, test } from 'vitest';
import { hashPassword } from '../../../../src/features/users/password-hash.ts';
import { makePasswordLink } from '../../../../src/features/users/password-links.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { freshTenant } from '../../../support/test-accounts.ts';
import { markupProblems } from '../markup-problems.ts';
import { openBrowser, PASSWORD } from '../portal-browser.ts';
import {
  AUTHORITY,
  invite,
  joinIn,
  PEOPLE,
  person,
  signInAtProvider,
  startApi,
  useOidcProvider,
} from './oidc-provider.ts';

useOidcProvider();

describe('where the provider is the only way in', () => {
  test('no password opens anything, and invitations are accepted there', async () => {
    const strict = await startApi({ HELIOGRAPH_PORTAL_PASSWORD_SIGN_IN: 'false' });
    const { database } = strict;
    const tenant = await freshTenant(database);
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
    await execute(database, `update users set password_hash = :old`, { old });
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
    const tenant = await freshTenant(strict.database);
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
