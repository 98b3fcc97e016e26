import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChrome } from '../../support/browser.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { startTestApi, WABA } from '../api/api-harness.ts';
import { listen, picture, problemsOf, signedInWindow } from './chrome.ts';
import { addActivity, addDelivery } from './delivery-fixtures.ts';
import { addUser, tenantOf } from './portal-browser.ts';

const ADMIN = 'admin@store.example';

let chrome: Browser;

beforeAll(async () => {
  chrome = await launchChrome();
});
afterAll(() => chrome.close());

async function start() {
  const api = await startTestApi(async () => ({
    startDelivery: async () => {
      throw new Error('Temporal is away');
    },
  }));
  const { database } = api;
  const { id } = await addEndpoint(database, WABA, 'https://receiver.example/hook');
  await addActivity(database, id, 24);
  const error = 'the endpoint returned 503';
  const failing = [
    {
      status: null,
      errorClass: 'timeout',
      errorMessage: 'The receiver did not respond in time.',
      durationMs: 15_000,
    },
    {
      status: 503,
      responseBody: '{"error":"down for maintenance"}',
      responseHeaders: { 'retry-after': '120' },
    },
  ];
  for (let index = 0; index < 12; index += 1) {
    await addDelivery(database, {
      eventId: `wamid.number-${index}`,
      minutesAgo: index + 3,
      type: index % 3 === 0 ? 'message' : 'status',
    });
  }
  await addDelivery(database, {
    eventId: 'wamid.retrying',
    state: 'pending',
    error,
    attempts: failing,
    minutesAgo: 2,
  });
  await database.raw(
    `update delivery_queue set state = 'retrying', attempts = 2, next_attempt_at = now() + interval '2 minutes'`,
  );
  const [failed = ''] = await addDelivery(database, {
    eventId: 'wamid.failed',
    state: 'failed',
    error,
    attempts: failing,
  });
  const tenantId = await tenantOf(database, WABA);
  await addUser(api, { email: ADMIN, role: 'admin', tenantId });
  return { origin: await listen(api.app), failed, endpointId: id };
}

test.each([
  ['with scripts', true],
  ['without scripts', false],
])(
  'an administrator sets up an endpoint, looks into deliveries and replays them, %s',
  async (_name, hasScripts) => {
    const { origin, failed, endpointId } = await start();
    const context = await signedInWindow(chrome, origin, ADMIN, {
      javaScriptEnabled: hasScripts,
      viewport: { width: 1280, height: 900 },
    });
    const page = await context.newPage();
    const refusals: string[] = [];
    page.on('console', (line) => {
      if (/Content Security Policy/i.test(line.text())) refusals.push(line.text());
    });
    const problems: Record<string, string[]> = {};
    const look = async (name: string) => {
      const found = await problemsOf(page, hasScripts);
      if (found.length > 0) problems[name] = found;
      if (hasScripts) await pictures(page, name);
    };
    const base = `${origin}/portal/w/${WABA}`;
    try {
      await page.goto(`${base}/endpoints`);
      await look('endpoints');
      await page.getByRole('link', { name: 'Add endpoint' }).click();
      await look('endpoint-new');
      await page.getByLabel('URL', { exact: true }).fill('http://169.254.169.254/');
      if (hasScripts) await page.getByLabel('Description').focus();
      else await page.getByRole('button', { name: 'Check the URL' }).click();
      await page.locator('.check-bad').waitFor();
      await page.getByRole('button', { name: 'Add endpoint' }).click();
      await page.locator('.field.wrong').waitFor();
      await look('endpoint-refused');
      await page.getByLabel('URL', { exact: true }).fill('https://second.example/hook');
      await page.getByLabel('Description').fill('<b>second</b>');
      await page.getByRole('checkbox', { name: 'message' }).check();
      await page.getByRole('button', { name: 'Add endpoint' }).click();
      await page.getByText('whsec_').first().waitFor();
      await look('endpoint-secret');
      const secret = await page.locator('.secret code').textContent();
      expect(page.url()).not.toContain('whsec');
      await page.getByRole('link', { name: 'Go to the endpoint' }).click();
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('<b>second</b>');
      expect(await page.content()).not.toContain(secret);
      await page.getByText('Pause or disable', { exact: true }).click();
      await page.getByLabel('Reason').fill('moving house');
      await page.getByRole('button', { name: 'Pause the endpoint' }).click();
      await page.getByText('The endpoint is paused.').waitFor();
      await look('endpoint-paused');
      await page.getByRole('button', { name: 'Enable' }).click();
      await page.getByText('The endpoint is enabled.').waitFor();
      await page.getByRole('button', { name: 'Send test event' }).click();
      await page.getByText('No attempt yet').waitFor();
      await look('test-event');
      await page.goto(`${base}/endpoints/${endpointId}`);
      await look('endpoint');
      await page.goto(`${base}/endpoints/${endpointId}/edit`);
      await look('endpoint-edit');
      await page.goto(`${base}/endpoints/alerts`);
      await look('alerts');
      await page.goto(`${base}/deliveries`);
      await look('deliveries');
      if (hasScripts) await losesAndFindsItsConnection(page);
      await selectsDeliveries(page, hasScripts, look);
      await page.getByLabel('Status').selectOption('failed');
      await page.getByRole('button', { name: 'Search' }).click();
      await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
      await page.goto(`${base}/deliveries/${failed}`);
      await look('delivery');
      await page.getByRole('button', { name: 'Replay this delivery' }).click();
      await page.getByRole('heading', { name: /^Replay \d+/ }).waitFor();
      await look('replay');
      await page.goto(`${base}/replays/new`);
      await look('replay-new');
      await page.getByRole('button', { name: 'Dry run' }).click();
      await page.getByRole('button', { name: /^Send \d+ events? again/ }).waitFor();
      await look('replay-counted');
      await page.getByRole('button', { name: /^Send \d+ events? again/ }).click();
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByText('The replay is paused.').waitFor();
      await page.getByRole('button', { name: 'Cancel the replay' }).click();
      await page.getByText('The replay is cancelled').waitFor();
      await page.goto(`${base}/replays`);
      await look('replays');
      await page.goto(`${base}/event-types`);
      await look('event-types');
      await page.getByRole('link', { name: 'order', exact: true }).click();
      await look('event-type');
      expect(problems).toEqual({});
      expect(refusals).toEqual([]);
    } finally {
      await context.close();
    }
  },
);

/** Ticks what waits in the list, and makes its next attempt now; it is dropped after a question. */
async function selectsDeliveries(
  page: Page,
  hasScripts: boolean,
  look: (name: string) => Promise<void>,
): Promise<void> {
  // Pictures leave styles behind.
  await page.reload();
  const box = page.getByRole('checkbox', { name: 'Select wamid.retrying' });
  if (hasScripts) {
    // Among all is the test event, which is no retry.
    await page.getByRole('checkbox', { name: 'Select all' }).check();
    expect(await box.isChecked()).toBe(true);
    await page.getByRole('checkbox', { name: 'Select all' }).uncheck();
    expect(await box.isChecked()).toBe(false);
  }
  await box.check();
  await look('deliveries-selected');
  await page.getByRole('button', { name: 'Retry now' }).click();
  await page.getByText('The next attempts are made now.').waitFor();
  await box.check();
  await page.getByRole('button', { name: 'Drop' }).click();
  await page.getByRole('heading', { name: 'Drop this delivery?' }).waitFor();
  await look('deliveries-drop');
  await page.getByRole('link', { name: 'Cancel' }).click();
  await box.waitFor();
}

/** A list that cannot follow says so, and no longer when it can. */
async function losesAndFindsItsConnection(page: Page): Promise<void> {
  const status = page.locator('.live-status', { hasText: 'Not connected' });
  await page.route('**/deliveries/rows*', (route) => route.fulfill({ status: 503 }));
  await status.waitFor();
  expect(await page.locator('#delivery-rows.stale tbody tr').count()).toBeGreaterThan(0);
  await page.unroute('**/deliveries/rows*');
  await status.waitFor({ state: 'detached' });
  expect(await page.locator('.stale').count()).toBe(0);
}

/** Wide and light, narrow and dark. */
async function pictures(page: Page, name: string): Promise<void> {
  if (process.env.HELIOGRAPH_TEST_PICTURES === undefined) return;
  for (const [width, colorScheme] of [
    [1280, 'light'],
    [390, 'dark'],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await picture(page, `${name}-${width}-${colorScheme}`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: 'light' });
}
