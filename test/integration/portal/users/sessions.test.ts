import { beforeEach, describe, expect, test } from 'vitest';
import { makePasswordLink } from '../../../../src/features/users/password-links.ts';
import { forgetEndedSessions } from '../../../../src/features/users/user-sessions.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { type FreshTenant, freshTenant } from '../../../support/test-accounts.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { newUser, openBrowser, PASSWORD, signInWith } from '../portal-browser.ts';

const COOKIE = '__Host-heliograph';

const api = apiOfFile();
let tenant: FreshTenant;

beforeEach(async () => {
  tenant = await freshTenant(api.database);
});

const newMember = (role = 'member') => newUser(api, role === 'operator' ? null : tenant.tenantId, role);

const sessionsOf = (email: string) =>
  query<{ id: string; at: Date }>(
    api.database,
    'select s.id from user_sessions s join users u on u.id = s.user_id where u.email = :email order by s.id',
    { email },
  );

const auditOf = (email: string) =>
  query<{ action: string; actor: string; ip: string | null }>(
    api.database,
    'select action, actor, ip from audit_log where target = :email order by id',
    { email: `user ${email}` },
  );

describe('the cookie', () => {
  test('is for this host, https and forms of this site only, and unknown to scripts', async () => {
    const { email } = await newMember();
    const answer = await signInWith(openBrowser(api.app), email);
    expect(answer.statusCode).toBe(303);
    const cookie = answer.cookies.find(({ name }) => name === COOKIE);
    expect(cookie).toMatchObject({
      path: '/',
      secure: true,
      httpOnly: true,
      sameSite: 'Lax',
      maxAge: 604_800,
    });
    expect(cookie).not.toHaveProperty('domain');
    expect(cookie?.value).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  test('is not in the database, in which only its hash is', async () => {
    const { browser } = await newMember();
    const rows = await query<{ text: string }>(
      api.database,
      `select s.*::text || encode(token_hash, 'hex') || encode(token_hash, 'base64') as text from user_sessions s`,
    );
    const token = browser.cookies.get(COOKIE) ?? 'none';
    expect(rows.length).toBeGreaterThan(0);
    expect(
      rows.filter(
        ({ text }) => text.includes(token) || text.includes(Buffer.from(token, 'base64url').toString('hex')),
      ),
    ).toEqual([]);
  });

  test.each(['', 'x', 'a'.repeat(43), `${'a'.repeat(5_000)}`, '%00'])(
    'that is made up opens nothing: %.10s',
    async (value) => {
      const browser = openBrowser(api.app);
      browser.cookies.set(COOKIE, value);
      const answer = await browser.get('/portal/account');
      expect(answer.statusCode).toBe(303);
      expect(answer.headers.location).toBe('/portal/sign-in?next=%2Fportal%2Faccount');
    },
  );
});

describe('a session', () => {
  test('begins with a new cookie at each sign-in, and the one before ends', async () => {
    const { email, browser } = await newMember();
    const before = browser.cookies.get(COOKIE);
    const stolen = openBrowser(api.app);
    stolen.cookies.set(COOKIE, before ?? '');
    expect((await stolen.get('/portal/account')).statusCode).toBe(200);
    await browser.get('/portal/account');
    await browser.post('/portal/sign-in', { email, password: PASSWORD });
    expect(browser.cookies.get(COOKIE)).not.toBe(before);
    expect((await browser.get('/portal/account')).statusCode).toBe(200);
    expect((await stolen.get('/portal/account')).statusCode).toBe(303);
  });

  test.each([
    ['twelve hours without use', `idle_until = now() - interval '1 second'`],
    ['seven days', `expires_at = now() - interval '1 second'`],
  ])('ends after %s', async (_name, change) => {
    const { email, browser } = await newMember();
    expect((await browser.get('/portal/account')).statusCode).toBe(200);
    const [row] = await query<{ idle: string; life: string }>(
      api.database,
      `select extract(epoch from idle_until - last_seen_at) / 3600 as idle,
              extract(epoch from expires_at - s.created_at) / 86400 as life
         from user_sessions s join users u on u.id = s.user_id where email = :email`,
      { email },
    );
    expect([Number(row?.idle), Number(row?.life)]).toEqual([12, 7]);
    await execute(
      api.database,
      `update user_sessions set ${change} where user_id = (select id from users where email = :email)`,
      { email },
    );
    expect((await browser.get('/portal/account')).statusCode).toBe(303);
    await forgetEndedSessions(api.database, 1_000);
    expect(await sessionsOf(email)).toEqual([]);
  });

  test('moves its idle limit on with use, and never its end', async () => {
    const { email, browser } = await newMember();
    const times = async () =>
      (
        await query<{ idle: Date; end: Date }>(
          api.database,
          `select idle_until as idle, expires_at as end from user_sessions s join users u on u.id = s.user_id
            where email = :email`,
          { email },
        )
      )[0];
    await execute(
      api.database,
      `update user_sessions set last_seen_at = now() - interval '2 hours', idle_until = now() + interval '10 hours'
        where user_id = (select id from users where email = :email)`,
      { email },
    );
    const before = await times();
    await browser.get('/portal/account');
    const after = await times();
    expect(after?.idle.getTime()).toBeGreaterThan((before?.idle.getTime() ?? 0) + 7_000_000);
    expect(after?.end).toEqual(before?.end);
  });

  test('is not kept open by pages that scripts ask for again and again', async () => {
    const { email, browser } = await newMember();
    await execute(
      api.database,
      `update user_sessions set last_seen_at = now() - interval '2 hours', idle_until = now() + interval '10 hours'
        where user_id = (select id from users where email = :email)`,
      { email },
    );
    const idle = () =>
      query(
        api.database,
        `select idle_until, last_seen_at from user_sessions s join users u on u.id = s.user_id where email = :email`,
        { email },
      );
    const before = await idle();
    expect((await browser.get(`/portal/w/${tenant.wabaId}/deliveries/rows`)).statusCode).toBe(200);
    expect(await idle()).toEqual(before);
    const polled = api.routes.filter(({ config }) => config?.polled).map(({ url }) => url);
    expect([...new Set(polled)].sort()).toEqual([
      '/portal/operator/deliveries/rows',
      '/portal/w/:wabaId/broadcasts/:id/progress',
      '/portal/w/:wabaId/deliveries/rows',
      '/portal/w/:wabaId/endpoints/:id/tests/:deliveryId/outcome',
      '/portal/w/:wabaId/replays/:id/progress',
    ]);
  });

  test('stays when its end cannot be written down', async () => {
    const { browser } = await newMember();
    const refuse = `alter table audit_log add constraint refused check (action <> 'user.signed_out') not valid`;
    await execute(api.database, refuse);
    await browser.get('/portal/account');
    const kept = browser.cookies.get(COOKIE) ?? '';
    expect((await browser.post('/portal/sign-out')).statusCode).toBe(500);
    await execute(api.database, 'alter table audit_log drop constraint refused');
    browser.cookies.set(COOKIE, kept);
    expect((await browser.get('/portal/account')).statusCode).toBe(200);
  });

  test('ends at sign-out, which only a form can do', async () => {
    const { email, browser } = await newMember();
    expect((await browser.get('/portal/sign-out')).statusCode).toBe(404);
    await browser.get('/portal/account');
    const kept = browser.cookies.get(COOKIE) ?? '';
    const answer = await browser.post('/portal/sign-out');
    expect(answer.headers.location).toBe('/portal/sign-in?done=signed-out');
    expect(browser.cookies.has(COOKIE)).toBe(false);
    browser.cookies.set(COOKIE, kept);
    expect((await browser.get('/portal/account')).statusCode).toBe(303);
    expect((await auditOf(email)).map(({ action }) => action)).toContain('user.signed_out');
  });

  test('of one’s own can be ended from the list, and nobody else’s can', async () => {
    const [one, other] = [await newMember(), await newMember()];
    const elsewhere = openBrowser(api.app);
    await signInWith(elsewhere, one.email);
    await one.browser.get('/portal/account');
    const [, second] = await sessionsOf(one.email);
    const [foreign] = await sessionsOf(other.email);
    const end = (id: string | undefined) => one.browser.post(`/portal/account/sessions/${id}/end`);
    expect((await end(foreign?.id)).statusCode).toBe(404);
    expect((await other.browser.get('/portal/account')).statusCode).toBe(200);
    for (const id of ['0', 'x', '999999999', '99999999999999999999', '%00']) {
      expect((await end(id)).statusCode).toBe(404);
    }
    expect((await end(second?.id)).statusCode).toBe(303);
    expect((await elsewhere.get('/portal/account')).statusCode).toBe(303);
    expect((await one.browser.get('/portal/account')).statusCode).toBe(200);
  });

  test('of a disabled user opens nothing', async () => {
    const { email, browser } = await newMember();
    await execute(api.database, 'update users set disabled_at = now() where email = :email', { email });
    expect((await browser.get('/portal/account')).statusCode).toBe(303);
    expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(422);
  });
});

describe('a password change', () => {
  const next = 'a wholly different sentence';

  test('ends all other sessions and rotates this one', async () => {
    const { email, browser } = await newMember();
    const elsewhere = openBrowser(api.app);
    await signInWith(elsewhere, email);
    await browser.get('/portal/account');
    const before = browser.cookies.get(COOKIE) ?? '';
    const answer = await browser.post('/portal/account/password', { current: PASSWORD, password: next });
    expect(answer.headers.location).toBe('/portal/account?done=password');
    expect((await browser.get('/portal/account?done=password')).body).toContain('Your password is changed.');
    expect((await elsewhere.get('/portal/account')).statusCode).toBe(303);
    const stolen = openBrowser(api.app);
    stolen.cookies.set(COOKIE, before);
    expect((await stolen.get('/portal/account')).statusCode).toBe(303);
    expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(422);
    expect((await signInWith(openBrowser(api.app), email, next)).statusCode).toBe(303);
    const audit = await auditOf(email);
    expect(audit.find(({ action }) => action === 'user.password_changed')).toEqual({
      action: 'user.password_changed',
      actor: email,
      ip: expect.stringMatching(/^10\.7\./),
    });
  });

  test('ends an open link that sets a password', async () => {
    const { email, browser } = await newMember();
    const [row] = await query<{ id: string }>(api.database, 'select id from users where email = :email', {
      email,
    });
    const authority = { actor: SYSTEM, tenantId: tenant.tenantId, userId: null };
    const { path } = await makePasswordLink({ database: api.database }, authority, row?.id ?? '');
    expect((await openBrowser(api.app).get(path)).statusCode).toBe(200);
    await browser.get('/portal/account');
    await browser.post('/portal/account/password', { current: PASSWORD, password: next });
    expect((await openBrowser(api.app).get(path)).statusCode).toBe(404);
  });

  test.each([
    ['the wrong present password', 'wrong', next, 'This is not your present password.'],
    ['a short one', PASSWORD, 'elevenchars', 'The password must have at least 12 characters.'],
    ['a common one', PASSWORD, 'Password1234', 'one of those that are guessed first'],
    ['a run', PASSWORD, 'abcdefghijklmn', 'one of those that are guessed first'],
    ['one of a few letters', PASSWORD, 'ababababababab', 'one of those that are guessed first'],
    ['an endless one', PASSWORD, 'x1y'.repeat(90), 'at most 256 characters'],
    ['U+0000', PASSWORD, 'abc\u0000 and some more', 'cannot be typed'],
  ])('refuses %s and changes nothing', async (_name, current, password, text) => {
    const { email, browser } = await newMember();
    await browser.get('/portal/account');
    const answer = await browser.post('/portal/account/password', { current, password });
    expect(answer.statusCode).toBe(422);
    expect(answer.body).toContain(text);
    expect((await browser.get('/portal/account')).statusCode).toBe(200);
    expect((await signInWith(openBrowser(api.app), email)).statusCode).toBe(303);
  });

  test('refuses the e-mail address as a password', async () => {
    const { email, browser } = await newMember();
    await browser.get('/portal/account');
    const answer = await browser.post('/portal/account/password', { current: PASSWORD, password: email });
    expect(answer.body).toContain('must not be the e-mail address');
  });
});
