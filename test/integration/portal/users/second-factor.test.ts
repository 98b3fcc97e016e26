import { TOTP } from 'otpauth';
import { beforeEach, describe, expect, test } from 'vitest';
import { inviteUser } from '../../../../src/features/users/invitations.ts';
import { makePasswordLink } from '../../../../src/features/users/password-links.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { type FreshTenant, freshTenant } from '../../../support/test-accounts.ts';
import { apiOfFile, testConfig } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import { newUser, openBrowser, PASSWORD, type PortalBrowser, signInWith } from '../portal-browser.ts';

const PAGE = '/portal/account/second-factor';
const CODE = '/portal/sign-in/code';
const AUTHORITY = { actor: SYSTEM, tenantId: null, userId: null };

/** Moved on by tests, so that they need not wait for the next code. */
let nowMs = Date.now();
const withSettings = (settings: Record<string, string>) => async () => ({
  config: testConfig(settings),
  now: () => nowMs,
});
const api = apiOfFile(withSettings({}));
const strict = apiOfFile(withSettings({ HELIOGRAPH_PORTAL_SECOND_FACTOR: 'operators' }));
let tenant: FreshTenant;

beforeEach(async () => {
  tenant = await freshTenant(api.database);
});

/** An authenticator app with this secret. */
const codeOf = (secret: string) => new TOTP({ secret }).generate({ timestamp: nowMs });
const nextCode = (secret: string) => {
  nowMs += 30_000;
  return codeOf(secret);
};
const secretIn = (body: string) => (/data-copy="([A-Z2-7 ]{39})"/.exec(body)?.[1] ?? '').replaceAll(' ', '');
const sealedIn = (body: string) => /name="sealed" value="([^"]+)"/.exec(body)?.[1] ?? '';
const codesIn = (body: string) => body.match(/[A-Z2-7]{4}(?:-[A-Z2-7]{4}){3}/g) ?? [];

/** A member with a second factor, in the browser in which it was set up. */
async function withFactor() {
  const { email, id, browser } = await newUser(api, tenant.tenantId);
  const enrolment = (await browser.get(PAGE)).body;
  const secret = secretIn(enrolment);
  const answer = await browser.post(PAGE, { sealed: sealedIn(enrolment), code: codeOf(secret) });
  expect(answer.statusCode).toBe(200);
  return { email, browser, secret, id, recoveryCodes: codesIn(answer.body) };
}

/** The first step in a browser that is new. */
async function firstStep(email: string): Promise<PortalBrowser> {
  const browser = openBrowser(api.app);
  expect((await signInWith(browser, email)).statusCode).toBe(303);
  await browser.get(CODE);
  return browser;
}

const giveCode = (browser: PortalBrowser, code: string) =>
  browser.post(CODE, { code, next: '/portal/account' });
const isIn = async (browser: PortalBrowser) => (await browser.get('/portal/account')).statusCode === 200;
const actions = async (email: string) =>
  (
    await query<{ action: string }>(
      api.database,
      'select action from audit_log where target = :email order by id',
      { email: `user ${email}` },
    )
  ).map(({ action }) => action);

describe('setting up', () => {
  test('shows a QR code and the key, wants a right code, shows recovery codes once, and ends other sessions', async () => {
    const { email, browser } = await newUser(api, tenant.tenantId, 'admin');
    const elsewhere = openBrowser(api.app);
    await signInWith(elsewhere, email);
    const page = await browser.get(PAGE);
    expect(page.body).toMatch(/<svg class="qr" viewBox="0 0 \d+ \d+" role="img"[^>]+><path d="M/);
    expect(await markupProblems(page.body)).toEqual([]);
    const [sealed, secret] = [sealedIn(page.body), secretIn(page.body)];
    const wrong = await browser.post(PAGE, { sealed, code: '000000' });
    expect(wrong.statusCode).toBe(422);
    expect(secretIn(wrong.body)).toBe(secret);
    expect(await markupProblems(wrong.body)).toEqual([]);
    const before = browser.cookies.get('__Host-heliograph');
    const done = await browser.post(PAGE, { sealed, code: codeOf(secret) });
    expect(codesIn(done.body)).toHaveLength(10);
    expect(await markupProblems(done.body)).toEqual([]);
    expect(browser.cookies.get('__Host-heliograph')).not.toBe(before);
    expect([await isIn(browser), await isIn(elsewhere)]).toEqual([true, false]);
    expect((await browser.get(PAGE)).body).toContain('Recovery codes left: <strong>10</strong>');
    expect(await actions(email)).toContain('user.second_factor_set');
    // A second one cannot take its place.
    const other = await firstStep(email);
    await other.post(PAGE, { sealed, code: nextCode(secret) });
    expect(await isIn(other)).toBe(false);
  });

  test('keeps nothing readable in the database', async () => {
    const { secret, recoveryCodes } = await withFactor();
    const rows = await query<{ text: string }>(
      api.database,
      `select t.*::text as text from user_totp t union all
       select r.*::text || encode(code_hash, 'escape') from recovery_codes r`,
    );
    const all = rows.map(({ text }) => text).join('\n');
    for (const text of [secret, ...recoveryCodes, ...recoveryCodes.map((code) => code.replaceAll('-', ''))]) {
      expect(all).not.toContain(text);
    }
  });

  test('cannot be done with what was sealed for another user', async () => {
    const { browser: one } = await newUser(api, tenant.tenantId);
    const { browser: other } = await newUser(api, tenant.tenantId);
    const page = (await one.get(PAGE)).body;
    await other.get(PAGE);
    const answer = await other.post(PAGE, { sealed: sealedIn(page), code: codeOf(secretIn(page)) });
    expect(answer.statusCode).toBe(422);
  });
});

describe('the second step', () => {
  test('comes after the password, and until then no page and no form is there', async () => {
    const { email, secret } = await withFactor();
    const browser = openBrowser(api.app);
    await signInWith(browser, email);
    for (const path of [
      '/portal',
      '/portal/account',
      `/portal/w/${tenant.wabaId}`,
      `/portal/w/${tenant.wabaId}/keys`,
    ]) {
      expect((await browser.get(path)).headers.location?.split('?')[0]).toBe(CODE);
    }
    expect((await browser.get(PAGE)).headers.location).toBe(CODE);
    const page = await browser.get(`${CODE}?next=/portal/account`);
    expect(await markupProblems(page.body)).toEqual([]);
    expect(
      (await browser.post('/portal/account/password', { current: PASSWORD, password: 'a new long one' }))
        .statusCode,
    ).not.toBe(200);
    await browser.get(CODE);
    const before = browser.cookies.get('__Host-heliograph');
    const answer = await giveCode(browser, nextCode(secret));
    expect(answer.headers.location).toBe('/portal/account');
    expect(browser.cookies.get('__Host-heliograph')).not.toBe(before);
    expect(await isIn(browser)).toBe(true);
    const stolen = openBrowser(api.app);
    stolen.cookies.set('__Host-heliograph', before ?? '');
    expect(await isIn(stolen)).toBe(false);
    expect(await actions(email)).toContain('user.second_factor_given');
  });

  test('takes a code once, in the steps beside the present one, and no older one after it', async () => {
    const { email, secret } = await withFactor();
    const code = nextCode(secret);
    const one = await firstStep(email);
    const other = await firstStep(email);
    expect((await giveCode(one, code)).statusCode).toBe(303);
    expect((await giveCode(other, code)).statusCode).toBe(422);
    const late = nextCode(secret);
    nowMs += 30_000;
    expect((await giveCode(other, late)).statusCode).toBe(303);
    const third = await firstStep(email);
    expect((await giveCode(third, late)).statusCode).toBe(422);
    nowMs += 60_000;
    expect((await giveCode(third, codeOf(secret))).statusCode).toBe(303);
    expect(await actions(email)).toContain('user.second_factor_failed');
  });

  test('of two at once with one code lets one in', async () => {
    const { email, secret } = await withFactor();
    const browsers = [await firstStep(email), await firstStep(email), await firstStep(email)];
    const code = nextCode(secret);
    const answers = await Promise.all(browsers.map((browser) => giveCode(browser, code)));
    expect(answers.map(({ statusCode }) => statusCode).toSorted()).toEqual([303, 422, 422]);
  });

  test('takes a recovery code once, however it is typed', async () => {
    const { email, recoveryCodes } = await withFactor();
    const [code = ''] = recoveryCodes;
    const one = await firstStep(email);
    expect((await giveCode(one, code.toLowerCase().replaceAll('-', ' '))).statusCode).toBe(303);
    expect((await giveCode(await firstStep(email), code)).statusCode).toBe(422);
    expect(await actions(email)).toContain('user.recovery_code_used');
  });

  test('takes ten guesses from all addresses together; the owner’s browser has its own', async () => {
    const { email, id, secret } = await withFactor();
    const owner = await firstStep(email);
    await giveCode(owner, nextCode(secret));
    await owner.get('/portal/account');
    await owner.post('/portal/sign-out');
    const guesser = await firstStep(email);
    for (let guess = 0; guess < 10; guess += 1) {
      const from = guess % 2 === 0 ? guesser : await firstStep(email);
      expect((await giveCode(from, '000000')).statusCode).toBe(422);
    }
    expect((await giveCode(guesser, nextCode(secret))).statusCode).toBe(429);
    expect((await giveCode(await firstStep(email), codeOf(secret))).statusCode).toBe(429);
    await signInWith(owner, email);
    await owner.get(CODE);
    expect((await giveCode(owner, codeOf(secret))).statusCode).toBe(303);
    // All browsers that are known have so many together.
    await owner.get('/portal/account');
    await owner.post('/portal/sign-out');
    await signInWith(owner, email);
    await owner.get(CODE);
    expect((await giveCode(owner, '000000')).statusCode).toBe(422);
    const key = `sign-in-known:${id}`;
    await execute(api.database, 'update rate_limits set points = points + 99 where key = :key', { key });
    expect((await giveCode(owner, nextCode(secret))).statusCode).toBe(429);
  });

  test('must come within ten minutes', async () => {
    const { email, secret } = await withFactor();
    const browser = await firstStep(email);
    await execute(
      api.database,
      `update user_sessions set created_at = now() - interval '11 minutes'
        where second_factor_at is null and user_id = (select id from users where email = :email)`,
      { email },
    );
    expect((await giveCode(browser, nextCode(secret))).headers.location).toBe('/portal/sign-in');
  });

  test('cannot be gone round by an invitation or by a link for a new password', async () => {
    const { email, id } = await withFactor();
    const { database } = api;
    const { tenantId: other } = await freshTenant(database);
    const invited = await inviteUser({ database }, AUTHORITY, { email, role: 'admin', tenantId: other });
    const guest = openBrowser(api.app);
    await guest.get(invited.path);
    const answer = await guest.post(invited.path, { name: 'Asha', password: PASSWORD });
    expect([answer.statusCode, await isIn(guest)]).toEqual([422, false]);
    expect(answer.body).toContain('an account with a second factor');
    const { path } = await makePasswordLink({ database }, AUTHORITY, id);
    const next = 'another long sentence';
    const thief = openBrowser(api.app);
    await thief.get(path);
    await thief.post(path, { password: next });
    await signInWith(thief, email, next);
    expect((await thief.get('/portal/account')).headers.location?.split('?')[0]).toBe(CODE);
  });
});

describe('one’s own second factor', () => {
  test('gets new recovery codes, and is switched off', async () => {
    const { email, browser, recoveryCodes, secret } = await withFactor();
    await browser.get(PAGE);
    const renewed = codesIn((await browser.post(`${PAGE}/recovery-codes`)).body);
    expect(renewed).toHaveLength(10);
    const other = await firstStep(email);
    expect((await giveCode(other, recoveryCodes[0] ?? '')).statusCode).toBe(422);
    expect((await giveCode(other, renewed[0] ?? '')).statusCode).toBe(303);
    await browser.get(PAGE);
    expect((await browser.post(`${PAGE}/remove`)).headers.location).toBe(
      '/portal/account?done=second-factor-off',
    );
    const again = openBrowser(api.app);
    await signInWith(again, email);
    expect(await isIn(again)).toBe(true);
    expect(secret).not.toBe('');
  });

  test('is reset by an operator: all sessions end, and the owner is told until it is confirmed', async () => {
    const { email, id, browser } = await withFactor();
    const { browser: operator, email: resetter } = await newUser(api, null);
    const page = await operator.get(`/portal/operator/users/${id}/sessions`);
    expect(page.body).toContain('Reset the second factor');
    expect(await markupProblems(page.body)).toEqual([]);
    const answer = await operator.post(`/portal/operator/users/${id}/reset-second-factor`);
    expect(answer.headers.location).toBe(`/portal/operator/users/${id}/sessions?done=reset`);
    expect(await isIn(browser)).toBe(false);
    const owner = openBrowser(api.app);
    await signInWith(owner, email);
    const told = await owner.get('/portal/account');
    expect(told.body).toContain(`${resetter} reset your second factor`);
    const [, upTo = ''] = /name="upTo" value="(\d+)"/.exec(told.body) ?? [];
    await owner.post('/portal/account/notices', { upTo });
    expect((await owner.get(`/portal/w/${tenant.wabaId}/keys`)).body).not.toContain(
      'reset your second factor',
    );
    expect(await actions(email)).toContain('user.second_factor_reset');
  });
});

describe('where operators must have a second factor', () => {
  test('an operator sets one up before anything else, and cannot switch it off; members are left alone', async () => {
    const operator = (await newUser(strict, null)).browser;
    for (const path of [
      '/portal',
      '/portal/account',
      '/portal/operator/users',
      `/portal/w/${tenant.wabaId}`,
    ]) {
      expect((await operator.get(path)).headers.location?.split('?')[0]).toBe(PAGE);
    }
    const page = await operator.get(PAGE);
    expect(page.body).toContain('asks for a second factor');
    expect(page.body).not.toContain('<nav');
    expect(await markupProblems(page.body)).toEqual([]);
    const secret = secretIn(page.body);
    await operator.post(PAGE, { sealed: sealedIn(page.body), code: codeOf(secret) });
    expect((await operator.get('/portal')).headers.location).toBe('/portal/operator/health');
    await operator.get(PAGE);
    expect((await operator.post(`${PAGE}/remove`)).statusCode).toBe(404);
    const { tenantId } = await freshTenant(strict.database);
    const { browser: member } = await newUser(strict, tenantId);
    expect(await isIn(member)).toBe(true);
  });
});
