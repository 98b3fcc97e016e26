import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setUpPath } from '../../../../src/features/users/first-operator.ts';
import { launchChrome } from '../../../support/browser.ts';
import { startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { problemsOf } from '../chrome.ts';

let chrome: Browser;

beforeAll(async () => {
  chrome = await launchChrome();
});
afterAll(() => chrome.close());

async function listening(): Promise<{ api: TestApi; origin: string; setUp: string }> {
  const api = await startTestApi();
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = api.app.server.address() as AddressInfo;
  const encryptionKeys = [{ id: 'k1', key: Buffer.alloc(32, 1) }];
  const setUp = (await setUpPath({ database: api.database, encryptionKeys })) ?? '';
  return { api, origin: `http://127.0.0.1:${port}`, setUp };
}

test.each([
  ['with scripts', true],
  ['without scripts', false],
])(
  'from the set-up link over an invitation to the sign-out, over plain http on this machine, %s',
  async (_name, hasScripts) => {
    const { origin, setUp } = await listening();
    const context = await chrome.newContext({ javaScriptEnabled: hasScripts });
    const page = await context.newPage();
    const refusals: string[] = [];
    page.on('console', (line) => {
      if (/Content Security Policy/i.test(line.text())) refusals.push(line.text());
    });
    const problems: Record<string, string[]> = {};
    const look = async (name: string) => {
      const found = await problemsOf(page, hasScripts);
      if (found.length > 0) problems[name] = found;
    };
    try {
      await page.goto(`${origin}${setUp}`);
      await look('set-up');
      await page.getByLabel('E-mail address').fill('op@example.com');
      await page.getByLabel('Your name').fill('<i>Op</i>');
      await page.getByLabel('Password').fill('a sentence of mine');
      await page.getByRole('button', { name: 'Create the operator' }).click();
      await page.goto(`${origin}/portal/w/${WABA}/users`);
      await look('users');
      await page.getByLabel('E-mail address').fill('asha@store.example');
      await page.getByRole('button', { name: 'Create an invitation link' }).click();
      const link = await page.locator('.copyable code').textContent();
      await look('link');
      await page.goto(`${origin}/portal/account`);
      await look('account');
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('<i>Op</i>');
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByText('You are signed out.').waitFor();
      await look('sign-in');
      await page.goto(`${origin}${new URL(link ?? '').pathname}`);
      await look('invitation');
      await page.getByLabel('Your name').fill('Asha');
      await page.getByLabel('Password').fill('too short');
      await page.getByRole('button', { name: 'Create the account' }).click();
      await page.getByText('must have at least 12 characters').waitFor();
      await look('invitation with a mistake');
      await page.getByLabel('Password').fill('another sentence of mine');
      await page.getByRole('button', { name: 'Create the account' }).click();
      await page.goto(`${origin}/portal/account`);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.goto(`${origin}/portal/account`);
      expect(new URL(page.url()).pathname).toBe('/portal/sign-in');
      await page.getByLabel('E-mail address').fill('asha@store.example');
      await page.getByLabel('Password').fill('wrong password!');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('E-mail address or password is wrong.').waitFor();
      await look('sign-in with a mistake');
      await page.getByLabel('Password').fill('another sentence of mine');
      await page.getByRole('button', { name: 'Sign in' }).click();
      expect(new URL(page.url()).pathname).toBe('/portal/account');
      await page.goto(`${origin}/portal/nothing`);
      await look('not found');
      expect(problems).toEqual({});
      expect(refusals).toEqual([]);
    } finally {
      await context.close();
    }
  },
);
