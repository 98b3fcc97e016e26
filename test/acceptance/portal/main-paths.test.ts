import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchChrome } from '../../support/browser.ts';
import { portalWindow } from '../support/portal-window.ts';
import { description } from '../support/stack.ts';
import { startTenantServer, type TenantServer } from '../support/tenant-server.ts';

const WABA = '900000000000101';
const WITHOUT_SCRIPTS = { javaScriptEnabled: false };

let chrome: Browser;
let server: TenantServer;

beforeAll(async () => {
  chrome = await launchChrome();
  server = await startTenantServer();
});
afterAll(async () => {
  await chrome.close();
  await server.goAway();
});

const pathOf = (path: string) => `${description().apiUrl}/portal/w/${WABA}/${path}`;

/** Loads the page again until it says so: without a script nothing moves by itself. */
async function reloadUntil(page: Page, text: string | RegExp): Promise<void> {
  for (let tries = 0; tries < 40; tries += 1) {
    if ((await page.getByText(text).count()) > 0) return;
    await page.waitForTimeout(250);
    await page.reload();
  }
  throw new Error(`the page never said ${text}: ${await page.locator('main').innerText()}`);
}

describe('without a script', () => {
  test('an administrator adds an endpoint, tests it, pauses it, replays what it got, and removes it', async () => {
    const page = await portalWindow(chrome, 'admin', WITHOUT_SCRIPTS);
    await page.goto(pathOf('endpoints'));
    await page.getByRole('link', { name: 'Add endpoint' }).click();
    await page.getByLabel('URL', { exact: true }).fill(`${server.url}/hook`);
    await page.getByLabel('Description').fill('order system');
    await page.getByRole('checkbox', { name: 'order', exact: true }).check();
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    await page.getByText('whsec_').first().waitFor();
    await page.getByRole('link', { name: 'Go to the endpoint' }).click();
    const endpointUrl = page.url().split('?')[0] ?? '';

    await page.getByRole('button', { name: 'Send test event' }).click();
    await reloadUntil(page, /200/);
    expect(server.accepted()).toHaveLength(1);
    expect(server.accepted()[0]?.headers['webhook-signature']).toMatch(/^v1,/);

    await page.goto(pathOf('endpoints'));
    const listed = page.getByRole('row').filter({ hasText: 'order system' });
    await listed.getByRole('button', { name: 'Send test event' }).click();
    await reloadUntil(page, /200/);
    expect(server.accepted()).toHaveLength(2);

    await page.goto(endpointUrl);
    await page.getByText('Pause or disable', { exact: true }).click();
    await page.getByLabel('Reason').fill('moving house');
    await page.getByRole('button', { name: 'Pause the endpoint' }).click();
    await page.getByText('The endpoint is paused.').waitFor();
    await page.getByRole('button', { name: 'Enable' }).click();
    await page.getByText('The endpoint is enabled.').waitFor();

    await page.goto(pathOf(`deliveries?endpointId=${endpointUrl.split('/').at(-1)}`));
    await page.locator('tbody a[href*="/deliveries/dlv_"]').first().click();
    await page.getByRole('button', { name: 'Replay this delivery' }).click();
    await page.getByRole('heading', { name: /^Replay \d+/ }).waitFor();
    await expect.poll(() => server.accepted().length).toBe(3);

    await page.goto(`${endpointUrl}/delete`);
    await page.getByRole('button', { name: /^Remove|^Delete/ }).click();
    await page.goto(endpointUrl);
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    await page.context().close();
  });

  test('a key is asked for, approved, and shown once', async () => {
    const admin = await portalWindow(chrome, 'admin', WITHOUT_SCRIPTS);
    await admin.goto(pathOf('keys/new'));
    const purpose = `order system ${Date.now()}`;
    await admin.getByLabel('Purpose').fill(purpose);
    await admin.getByRole('checkbox', { name: /^read:/ }).check();
    await admin.getByRole('button', { name: 'Request the key' }).click();
    await admin.getByText(purpose).first().waitFor();

    const operator = await portalWindow(chrome, 'operator', WITHOUT_SCRIPTS);
    await operator.goto(`${description().apiUrl}/portal/operator/approvals`);
    await operator.locator('tr', { hasText: purpose }).getByRole('link').first().click();
    await operator.getByRole('button', { name: 'Approve' }).click();
    await operator.context().close();

    await admin.goto(pathOf('keys'));
    await admin.locator('tr', { hasText: purpose }).getByRole('link').first().click();
    await admin.getByRole('button', { name: 'Show the key once' }).click();
    const key = /ck_[0-9a-f]{64}/.exec(await admin.content())?.[0] ?? '';
    const { apiUrl } = description();
    const headers = { authorization: `Bearer ${key}` };
    expect((await fetch(`${apiUrl}/api/external/me`, { headers })).status).toBe(200);
    const requestUrl = admin.url().replace(/\/reveal$/, '');
    await admin.goto(requestUrl);
    expect(await admin.content()).not.toContain(key);

    await admin.goto(pathOf('keys'));
    await admin.locator('tr', { hasText: purpose }).getByRole('link', { name: 'Revoke' }).click();
    await admin.getByRole('button', { name: 'Revoke this key' }).click();
    expect((await fetch(`${apiUrl}/api/external/me`, { headers })).status).toBe(401);
    await admin.context().close();
  });

  test('an operator adds a tenant, and invites its administrator, who signs in', async () => {
    const operator = await portalWindow(chrome, 'operator', WITHOUT_SCRIPTS);
    const email = `kim-${Date.now()}@bakery.example`;
    await operator.goto(`${description().apiUrl}/portal/operator/tenants`);
    await operator.getByLabel('Business name').fill('Corner Bakery');
    await operator.getByRole('button', { name: 'Add the tenant' }).click();
    await operator.getByRole('heading', { name: 'Corner Bakery' }).waitFor();
    await operator.getByRole('link', { name: 'Users of the tenant' }).click();
    await operator.getByLabel('E-mail address').last().fill(email);
    await operator.getByRole('button', { name: 'Create an invitation link' }).click();
    const link = /\/portal\/invitations\/[\w-]+/.exec(await operator.content())?.[0] ?? '';
    await operator.context().close();

    const guest = await (await chrome.newContext(WITHOUT_SCRIPTS)).newPage();
    await guest.goto(`${description().apiUrl}${link}`);
    await guest.getByLabel('Your name').fill('Kim Baker');
    await guest.getByLabel('Password').fill('bread and more bread');
    await guest.getByRole('button', { name: 'Create the account' }).click();
    await guest.getByText('No WABAs yet').waitFor();
    await guest.context().close();
  });
});
