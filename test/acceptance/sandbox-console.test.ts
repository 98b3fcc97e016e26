import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { picture, problemsOf } from '../integration/portal/chrome.ts';
import { launchChrome } from '../support/browser.ts';
import { noMoreWebhooks } from './support/received.ts';
import { description } from './support/stack.ts';

const NUMBER = '800000000000111';
const ASHA = '12025550143';
const WABA = '900000000000101';

let chrome: Browser;

beforeAll(async () => {
  chrome = await launchChrome();
  await noMoreWebhooks();
});
afterAll(() => chrome.close());
afterEach(async () => await answerAgain());

/** What a failed test leaves behind must not make others fail. */
async function answerAgain(): Promise<void> {
  await fetch(`${description().receiverUrl}/control/behaviour`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mode: 'ok' }),
  });
}

/** The console as a newcomer has it: signed in with what `npm start` printed. */
async function openConsole(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
  const { apiUrl, portalUsers } = description();
  const context = await chrome.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const admin = portalUsers.find(({ role }) => role === 'admin');
  if (admin === undefined) throw new Error('no demo administrator');
  await page.goto(`${apiUrl}/portal/sign-in?next=/portal/sandbox`);
  await page.getByLabel('E-mail address').fill(admin.email);
  await page.getByLabel('Password').fill(admin.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Sandbox console' }).waitFor();
  return page;
}

function row(page: Page, type: string, words: string) {
  return page
    .locator('details.webhook', { has: page.locator(`.event-type:text-is("${type}")`) })
    .filter({ hasText: words });
}

async function write(page: Page, words: string): Promise<void> {
  await page.getByLabel('Message of Asha Tester').fill(words);
  await page.keyboard.press('Enter');
}

async function sendAsBusiness(message: Record<string, unknown>): Promise<void> {
  const { apiUrl, tenants } = description();
  const apiKey = tenants.find(({ wabaId }) => wabaId === WABA)?.apiKey;
  const response = await fetch(`${apiUrl}/api/external/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ phoneNumberId: NUMBER, to: ASHA, ...message }),
  });
  expect(response.status).toBe(200);
}

describe('the sandbox console', () => {
  test('shows what a customer writes as a verified webhook, with its workflow', async () => {
    const page = await openConsole();
    await write(page, 'What do you have today?');
    await row(page, 'message', 'What do you have today?').waitFor();
    await write(page, 'Message number 1');
    await row(page, 'message', 'Message number 1').getByText('verified').waitFor();
    await page.locator('.line.customer', { hasText: 'Message number 1' }).getByText('delivered ✓✓').waitFor();
    const received = row(page, 'message', 'Message number 1');
    await received.locator('summary').click();
    await received.getByText('"eventType": "message"').waitFor();
    const workflow = received.getByRole('link', { name: /^delivery/ });
    await workflow.waitFor();
    expect(await workflow.getAttribute('href')).toContain(
      `${description().temporalUiUrl}/namespaces/default/workflows/delivery`,
    );
    expect(await received.getByRole('link', { name: /^dlv_/ }).getAttribute('href')).toContain(
      `/portal/w/${WABA}/deliveries/dlv_`,
    );
    expect(await problemsOf(page, true)).toEqual([]);
    await page.context().close();
  });

  test('sends a photo, whose message and file arrive, and shows what the business answers, with its ticks', async () => {
    const page = await openConsole();
    await page.locator('summary[aria-label="Attach"]').click();
    await page.getByPlaceholder('Caption').fill('Front door');
    expect(await problemsOf(page, true)).toEqual([]);
    await page.getByRole('button', { name: 'Send the photo Coffee' }).click();
    await row(page, 'message', 'Front door').waitFor();
    await row(page, 'media.ready', 'image/jpeg').first().waitFor();
    const photo = page.getByRole('img', { name: 'Front door' });
    // It has its place before it is loaded.
    await expect
      .poll(() => photo.evaluate((image: { naturalWidth: number }) => image.naturalWidth))
      .toBe(720);
    const button = (title: string) => ({ type: 'reply', reply: { id: title, title } });
    const action = { buttons: [button('Small'), button('Large')] };
    await sendAsBusiness({
      type: 'interactive',
      interactive: { type: 'button', body: { text: 'Which size?' }, action },
    });
    const question = page.locator('.line.business', { hasText: 'Which size?' }).last();
    await question.getByText('read').waitFor();
    await row(page, 'status', 'read').first().waitFor();
    await question.getByRole('button', { name: 'Large' }).click();
    await row(page, 'message', 'interactive "Large"').waitFor();
    await question.locator('summary').click();
    await question.getByRole('button', { name: '👍' }).click();
    await row(page, 'message', 'reaction').waitFor();
    await question.locator('.reactions').waitFor();
    await picture(page, 'sandbox-console');
    await page.context().close();
  });

  test('shows retries in order when the tenant is told to fail, and the delivery when it is back', async () => {
    const page = await openConsole();
    await page.getByRole('button', { name: '500', exact: true }).click();
    await page.locator('button[value="error"][aria-pressed="true"]').waitFor();
    await write(page, 'Is anybody there?');
    const attempts = row(page, 'message', 'Is anybody there?');
    await attempts.getByText('returned 500').first().waitFor();
    await attempts.getByText('attempt 2').waitFor();
    await page.getByText('pending, in order').waitFor();
    await page.getByRole('button', { name: '200 OK' }).click();
    await expect.poll(() => attempts.first().getByText('returned 500').count()).toBe(0);
    expect(await attempts.first().getAttribute('class')).toContain('good');
    expect(await problemsOf(page, true)).toEqual([]);
    await page.context().close();
  });

  test('sends 100 messages, and all of them arrive', async () => {
    const page = await openConsole();
    const received = async () => Number(await page.locator('.stat dd').first().innerText());
    const before = await received();
    await page.getByRole('button', { name: 'Send 100 messages' }).click();
    await expect.poll(received).toBeGreaterThanOrEqual(before + 100);
    const loaded = await page.reload();
    expect((await loaded?.body())?.length).toBeLessThan(100_000);
    await page.context().close();
  });

  test('works without scripts, on a small dark screen and by keyboard', async () => {
    const page = await openConsole({
      javaScriptEnabled: false,
      viewport: { width: 390, height: 844 },
      colorScheme: 'dark',
    });
    await write(page, 'No script here');
    await page.getByText('The message was sent.').waitFor();
    await page.locator('.line.customer', { hasText: 'No script here' }).waitFor();
    const arrived = row(page, 'message', 'No script here');
    for (let tries = 0; tries < 30 && (await arrived.count()) === 0; tries += 1) await page.reload();
    await arrived.locator('summary').focus();
    await page.keyboard.press('Enter');
    await arrived.getByRole('link', { name: 'Workflow, headers and body' }).click();
    await page.getByText('webhook-signature: v1,').waitFor();
    expect(await problemsOf(page, false)).toEqual([]);
    await page.goBack();
    await page.locator('summary[aria-label="Attach"]').click();
    await page.getByRole('button', { name: 'Location' }).click();
    await page.getByText('Sample Square').waitFor();
    const width = await page.evaluate('document.documentElement.scrollWidth');
    expect(width).toBeLessThanOrEqual(390);
    expect(await problemsOf(page, false)).toEqual([]);
    await picture(page, 'sandbox-console-small-dark');
    await page.context().close();
  });
});
