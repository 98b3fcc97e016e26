import { TOTP } from 'otpauth';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { launchChrome } from '../../../support/browser.ts';
import { startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { listen, problemsInAllLooks, problemsOf } from '../chrome.ts';
import { addUser, PASSWORD, tenantOf } from '../portal-browser.ts';

let chrome: Browser;

beforeAll(async () => {
  chrome = await launchChrome();
});
afterAll(() => chrome.close());

async function signIn(page: Page, origin: string, email: string): Promise<void> {
  await page.goto(`${origin}/portal/sign-in`);
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function age({ database }: TestApi): Promise<void> {
  await execute(database, `update user_sessions set proven_at = now() - interval '11 minutes'`);
}

test.each([
  ['with scripts', true],
  ['without scripts', false],
])(
  'a second factor is set up, asked for, and proves who it is, %s',
  { timeout: 800_000 },
  async (_name, hasScripts) => {
    let nowMs = Date.now();
    const api = await startTestApi(async () => ({ now: () => nowMs }));
    const origin = await listen(api.app);
    const tenantId = await tenantOf(api.database, WABA);
    await addUser(api, { email: 'asha@store.example', role: 'admin', tenantId });
    await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
    const context = await chrome.newContext({ javaScriptEnabled: hasScripts });
    const page = await context.newPage();
    const refusals: string[] = [];
    page.on('console', (line) => {
      if (/Content Security Policy/i.test(line.text())) refusals.push(line.text());
    });
    const problems: string[] = [];
    const look = async (name: string) => {
      problems.push(...(hasScripts ? await problemsInAllLooks(page, name) : await problemsOf(page, false)));
    };
    let secret = '';
    const code = () => {
      nowMs += 30_000;
      return new TOTP({ secret }).generate({ timestamp: nowMs });
    };
    try {
      await signIn(page, origin, 'asha@store.example');
      await page.goto(`${origin}/portal/account`);
      await page.getByRole('link', { name: 'Set one up' }).click();
      secret = ((await page.locator('.copyable code').textContent()) ?? '').replaceAll(' ', '');
      await look('enrolment');
      await page.getByLabel('Code that the app shows').fill(code());
      await page.getByRole('button', { name: 'Set up the second factor' }).click();
      await page.getByRole('heading', { name: 'Recovery codes' }).waitFor();
      await look('recovery-codes');
      await page.getByRole('link', { name: 'I have kept them' }).click();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await signIn(page, origin, 'asha@store.example');
      await page.getByRole('heading', { name: 'Second step' }).waitFor();
      await look('second-step');
      await page.getByLabel('Code').fill(code());
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.goto(`${origin}/portal/account`);
      await look('account');
      await page.getByRole('link', { name: 'Manage it' }).click();
      await look('second-factor');
      await age(api);
      await page.goto(`${origin}/portal/w/${WABA}/users`);
      await page.getByLabel('E-mail address').fill('kim@store.example');
      await page.getByRole('button', { name: 'Create an invitation link' }).click();
      await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor();
      await look('confirm');
      await page.getByLabel('Code of your authenticator').fill(code());
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByText('Send this link to').waitFor();
      await page.getByText('kim@store.example').waitFor();
      await page.goto(`${origin}/portal/account`);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await signIn(page, origin, 'op@host.example');
      const [user] = await query<{ id: string }>(
        api.database,
        `select id from users where email = 'asha@store.example'`,
      );
      await signInElsewhere(origin);
      await page.goto(`${origin}/portal/operator/users/${user?.id}/sessions`);
      await look('sessions');
      await page.getByRole('button', { name: 'Reset the second factor' }).click();
      await page.getByText('The second factor is reset').waitFor();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await signIn(page, origin, 'asha@store.example');
      await page.getByText('op@host.example reset your second factor').waitFor();
      await look('notices');
      await page.getByRole('button', { name: 'I have read this' }).click();
      await page.getByRole('heading', { name: 'Changes to your account' }).waitFor();
      expect(problems).toEqual([]);
      expect(refusals).toEqual([]);
    } finally {
      await context.close();
    }

    /** So that there is a session to look at. */
    async function signInElsewhere(from: string): Promise<void> {
      const other = await chrome.newContext();
      const window = await other.newPage();
      await signIn(window, from, 'asha@store.example');
      await window.getByLabel('Code').fill(code());
      await window.getByRole('button', { name: 'Continue' }).click();
      await window.getByRole('button', { name: 'Sign out' }).waitFor();
      await other.close();
    }
  },
);
