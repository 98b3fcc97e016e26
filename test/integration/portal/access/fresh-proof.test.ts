import { TOTP } from 'otpauth';
import { beforeEach, describe, expect, test } from 'vitest';
import { confirmPassword, makePasswordLink } from '../../../../src/features/users/password-links.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { type FreshTenant, freshTenant } from '../../../support/test-accounts.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import {
  joinTenant,
  newUser,
  openBrowser,
  PASSWORD,
  type PortalBrowser,
  signInWith,
} from '../portal-browser.ts';

const ADDRESS = '198.51.100.21';

const api = apiOfFile(async () => ({ now: () => nowMs }));
let nowMs = Date.now();
let tenant: FreshTenant;
let users: string;

beforeEach(async () => {
  tenant = await freshTenant(api.database);
  users = `/portal/w/${tenant.wabaId}/users`;
});

/** A user who looks at the page of the account. */
async function signedIn(role = 'admin') {
  const user = await newUser(api, role === 'operator' ? null : tenant.tenantId, role);
  await user.browser.get('/portal/account');
  return user;
}

/** Makes it eleven minutes since the user was asked last. */
const age = (email: string) =>
  execute(
    api.database,
    `update user_sessions set proven_at = proven_at - interval '11 minutes'
      where user_id = (select id from users where email = :email)`,
    { email },
  );
const invitations = async () =>
  (await query<{ email: string }>(api.database, 'select email from invitations order by id')).map(
    ({ email }) => email,
  );

/** What the question carries along. */
const carriedList = (body: string): [string, string][] =>
  [...body.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)].map(
    ([, name = '', value = '']) => [
      name,
      value
        .replaceAll('&quot;', '"')
        .replaceAll('&lt;', '<')
        .replaceAll('&gt;', '>')
        .replaceAll('&amp;', '&'),
    ],
  );
const carried = (body: string) => Object.fromEntries(carriedList(body));

describe('a form that wants a fresh proof', () => {
  test('asks for the password when the last proof is old, does nothing until then, and then does what was entered', async () => {
    const { email, browser } = await signedIn();
    const given = { email: '<b>"&kim@store.example', role: 'member' };
    await age(email);
    const question = await browser.post(`${users}/invite`, given);
    expect(question.statusCode).toBe(403);
    expect(question.body).toContain('Confirm that it is you');
    expect(await markupProblems(question.body)).toEqual([]);
    expect(carried(question.body)).toMatchObject(given);
    const wrong = await browser.post(`${users}/invite`, {
      ...given,
      'proof-of-presence': 'not the password',
    });
    expect([wrong.statusCode, carried(wrong.body).email]).toEqual([422, given.email]);
    expect(await markupProblems(wrong.body)).toEqual([]);
    const right = await browser.post(`${users}/invite`, {
      ...given,
      email: 'kim@store.example',
      'proof-of-presence': PASSWORD,
    });
    expect([right.statusCode, right.body.includes('One-time link')]).toEqual([200, true]);
    expect(await invitations()).toContain('kim@store.example');
    // For ten minutes it asks no more.
    const next = await browser.post(`${users}/invite`, { ...given, email: 'ravi@store.example' });
    expect(next.statusCode).toBe(200);
  });

  test('asks for a code where there is a second factor, and takes each once; the password is not enough', async () => {
    const { email, browser } = await signedIn();
    const page = (await browser.get('/portal/account/second-factor')).body;
    const secret = (/data-copy="([A-Z2-7 ]{39})"/.exec(page)?.[1] ?? '').replaceAll(' ', '');
    const sealed = /name="sealed" value="([^"]+)"/.exec(page)?.[1] ?? '';
    const code = () => new TOTP({ secret }).generate({ timestamp: nowMs });
    await browser.post('/portal/account/second-factor', { sealed, code: code() });
    await age(email);
    await browser.get('/portal/account');
    const invite = (proof: string) =>
      browser.post(`${users}/invite`, {
        email: 'code@store.example',
        role: 'member',
        'proof-of-presence': proof,
      });
    expect((await invite(PASSWORD)).statusCode).toBe(422);
    expect((await invite(code())).statusCode).toBe(422);
    nowMs += 30_000;
    const used = code();
    expect((await invite(used)).statusCode).toBe(200);
    await age(email);
    expect((await invite(used)).statusCode).toBe(422);
    // With a stolen session, the password alone does not change how the user signs in.
    const change = { current: PASSWORD, password: 'another long sentence' };
    expect((await browser.post('/portal/account/password', change)).statusCode).toBe(403);
  });

  test('carries fields of many lines and those that are there more than once', async () => {
    const { email, browser } = await signedIn();
    const path = `/portal/w/${tenant.wabaId}/endpoints`;
    const entered: [string, string][] = [
      ['url', 'https://receiver.example/proven?a=1&b="2"'],
      ['eventTypes', 'message'],
      ['eventTypes', 'order'],
      ['newHeaders', 'Authorization: Bearer "s3cret" & <b>\r\nX-Shop: 1'],
    ];
    await age(email);
    const send = (fields: [string, string][]) => browser.post(path, [['_csrf', browser.token()], ...fields]);
    const question = await send(entered);
    expect(question.statusCode).toBe(403);
    expect(await markupProblems(question.body)).toEqual([]);
    const again = carriedList(question.body).filter(([name]) => name !== '_csrf');
    expect(again).toEqual(entered);
    const added = await send([...again, ['proof-of-presence', PASSWORD]]);
    expect(added.body).toContain('The endpoint is added');
    const [, id] = /endpoints\/(\d+)"/.exec(added.body) ?? [];
    const edit = (await browser.get(`${path}/${id}/edit`)).body;
    expect(edit.match(/name="eventTypes" value="(?:message|order)" checked/g)).toHaveLength(2);
    expect(edit).toMatch(/name="removedHeaders" value="x-shop"/i);
    // As large as the form lets a certificate and its key be.
    const pem = { certificate: 'MIIB/+=\r\n'.repeat(1_100), privateKey: 'MIIC/+=\r\n'.repeat(1_100) };
    await age(email);
    const certificate = await browser.post(`${path}/${id}/client-certificate`, pem);
    expect([certificate.statusCode, carried(certificate.body)]).toMatchObject([403, pem]);
  });

  test('counts guesses', async () => {
    const { email, browser } = await signedIn();
    await age(email);
    const guess = () =>
      browser.post(`${users}/invite`, {
        email: 'x@store.example',
        role: 'member',
        'proof-of-presence': 'wrong',
      });
    for (let count = 0; count < 10; count += 1) expect((await guess()).statusCode).toBe(422);
    expect((await guess()).statusCode).toBe(429);
    expect(await invitations()).not.toContain('x@store.example');
  });

  test('is not locked by strangers who type what its guesses are counted by as their e-mail address', async () => {
    const { email, browser, id } = await signedIn();
    const stranger = openBrowser(api.app, ADDRESS);
    for (let count = 0; count < 11; count += 1) await signInWith(stranger, `user ${id}`, 'wrong password!');
    await age(email);
    // From one network, as behind a proxy.
    const colleague = openBrowser(api.app, ADDRESS);
    for (const [name, value] of browser.cookies) colleague.cookies.set(name, value);
    await colleague.get('/portal/account');
    const invite = { email: 'lin@store.example', role: 'member', 'proof-of-presence': PASSWORD };
    expect((await colleague.post(`${users}/invite`, invite)).statusCode).toBe(200);
  });

  test('asks before the page of the second factor too, and leads back to it', async () => {
    const { email, browser } = await signedIn('member');
    await age(email);
    const asked = await browser.get('/portal/account/second-factor');
    expect(asked.headers.location).toBe('/portal/confirm?next=%2Fportal%2Faccount%2Fsecond-factor');
    const question = await browser.get(String(asked.headers.location));
    expect(await markupProblems(question.body)).toEqual([]);
    const { _csrf: _, ...fields } = carried(question.body);
    const answer = await browser.post('/portal/confirm', { ...fields, 'proof-of-presence': PASSWORD });
    expect(answer.headers.location).toBe('/portal/account/second-factor');
    expect((await browser.get('/portal/account/second-factor')).statusCode).toBe(200);
    const elsewhere = await browser.post('/portal/confirm', { next: 'https://evil.example/portal' });
    expect(elsewhere.headers.location).toBe('/portal');
  });
});

describe('sessions', () => {
  const sessionIds = async (email: string) =>
    (
      await query<{ id: string }>(
        api.database,
        'select s.id from user_sessions s join users u on u.id = s.user_id where email = :email order by s.id',
        { email },
      )
    ).map(({ id }) => id);
  const entries = (email: string) =>
    query<{ actor: string; detail: unknown }>(
      api.database,
      `select actor, detail from audit_log where action = 'user.sessions_ended' and target = :email order by id`,
      { email: `user ${email}` },
    );
  const isIn = async (browser: PortalBrowser) => (await browser.get('/portal/account')).statusCode === 200;

  test('are all but one’s own ended by a button, which is written down', async () => {
    const { email, browser } = await signedIn('member');
    const others = [openBrowser(api.app), openBrowser(api.app)];
    for (const other of others) await signInWith(other, email);
    const page = (await browser.get('/portal/account')).body;
    expect(page).toContain('End all other sessions');
    await browser.post('/portal/account/sessions/end-others');
    expect([await isIn(browser), ...(await Promise.all(others.map(isIn)))]).toEqual([true, false, false]);
    expect(await entries(email)).toEqual([{ actor: email, detail: { sessions: 2 } }]);
  });

  test('of a user are listed and ended by an administrator of the tenant, one or all, and the user is told', async () => {
    const [admin, { email, browser, id }] = [await signedIn(), await signedIn('member')];
    const other = openBrowser(api.app);
    await signInWith(other, email);
    const page = await admin.browser.get(`${users}/${id}/sessions`);
    expect(page.body.match(/<button class="secondary">End</g)).toHaveLength(2);
    expect(await markupProblems(page.body)).toEqual([]);
    const [first, second] = await sessionIds(email);
    expect((await admin.browser.post(`${users}/${id}/sessions/${first}/end`)).statusCode).toBe(303);
    expect([await isIn(browser), await isIn(other)]).toEqual([false, true]);
    const [own] = await sessionIds(admin.email);
    expect((await admin.browser.post(`${users}/${id}/sessions/${own}/end`)).statusCode).toBe(404);
    await admin.browser.post(`${users}/${id}/sessions/end`);
    expect(await isIn(other)).toBe(false);
    expect(second).not.toBe(first);
    expect(await entries(email)).toEqual([
      { actor: admin.email, detail: { sessions: 1 } },
      { actor: admin.email, detail: { sessions: 1 } },
    ]);
    await signInWith(browser, email);
    expect((await browser.get('/portal/account')).body).toContain(`${admin.email} ended sessions of yours`);
  });

  test('elsewhere are neither seen nor ended by the administrator of one tenant', async () => {
    const admin = await signedIn();
    const operator = await signedIn('operator');
    await execute(
      api.database,
      `insert into memberships (user_id, tenant_id, role) values (:id, :tenantId, 'member')`,
      { id: operator.id, tenantId: tenant.tenantId },
    );
    const page = await admin.browser.get(`${users}/${operator.id}/sessions`);
    expect(page.body).toContain('signed in nowhere');
    await admin.browser.post(`${users}/${operator.id}/sessions/end`);
    expect((await operator.browser.get('/portal/operator/health')).statusCode).toBe(200);
  });

  test('that a link of another person made possible are marked, and the owner is told; such a session cannot hide it', async () => {
    const { email, browser, id } = await signedIn('member');
    const maker = { actor: { ...SYSTEM, name: 'maker@store.example' }, tenantId: null, userId: null };
    const { path } = await makePasswordLink({ database: api.database }, maker, id);
    const thief = openBrowser(api.app);
    await thief.get(path);
    await thief.post(path, { password: 'chosen by the maker' });
    await signInWith(thief, email, 'chosen by the maker');
    const seen = (await thief.get('/portal/account')).body;
    expect(seen).toContain('link made by maker@store.example');
    expect(seen).not.toContain('I have read this');
    expect((await thief.post('/portal/account/notices', { upTo: '999999999' })).statusCode).toBe(404);
    // The owner gets a link of an operator, and chooses a password then.
    const again = await makePasswordLink({ database: api.database }, { ...maker, actor: SYSTEM }, id);
    await browser.get(again.path);
    await browser.post(again.path, { password: 'from the operator' });
    await signInWith(browser, email, 'from the operator');
    await browser.get('/portal/account');
    await browser.post('/portal/account/password', {
      current: 'from the operator',
      password: 'my own at last',
    });
    await confirmPassword({ database: api.database }, { actor: SYSTEM, tenantId: null, userId: null }, id);
    const owner = openBrowser(api.app);
    await signInWith(owner, email, 'my own at last');
    const told = (await owner.get(`/portal/w/${tenant.wabaId}`)).body;
    expect(told).toMatch(
      /signed in from 10\.7\.\d+\.\d+, with the password that was set through a link made by maker@/,
    );
    expect(await markupProblems(told)).toEqual([]);
    const [, upTo = ''] = /name="upTo" value="(\d+)"/.exec(told) ?? [];
    await owner.post('/portal/account/notices', { upTo });
    expect((await owner.get(`/portal/w/${tenant.wabaId}`)).body).not.toContain(
      'This happened to your account',
    );
    expect((await owner.get('/portal/account')).body).toContain('Changes to your account');
  });

  test('get neither a fresh proof nor a longer life by an invitation to a further tenant', async () => {
    const { email, browser } = await signedIn('member');
    await age(email);
    await execute(
      api.database,
      `update user_sessions set expires_at = now() + interval '1 hour' where user_id = (select id from users where email = :email)`,
      { email },
    );
    const other = await freshTenant(api.database);
    const further = { email, role: 'admin', tenantId: other.tenantId };
    expect((await joinTenant(api, browser, further)).headers.location).toBe('/portal');
    await browser.get('/portal/account');
    const invited = { email: 'by-a-thief@store.example', role: 'admin' };
    const answer = await browser.post(`/portal/w/${other.wabaId}/users/invite`, invited);
    expect(answer.statusCode).toBe(403);
    expect(await invitations()).not.toContain(invited.email);
    const [session] = await query<{ isShort: boolean }>(
      api.database,
      `select s.expires_at < now() + interval '61 minutes' as "isShort"
         from user_sessions s join users u on u.id = s.user_id where u.email = :email`,
      { email },
    );
    expect(session?.isShort).toBe(true);
  });

  test('leave nothing in the browser when they are signed out', async () => {
    const { browser } = await signedIn('member');
    // Whom the provider confirmed could join, and so sign in, for ten minutes more.
    for (const name of ['oidc', 'proven']) browser.cookies.set(`__Host-heliograph-${name}`, 'sealed');
    const answer = await browser.post('/portal/sign-out');
    expect(answer.headers['clear-site-data']).toBe('"cache", "storage"');
    expect([...browser.cookies.keys()]).toEqual([]);
  });
});
