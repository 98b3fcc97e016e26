import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setBrand } from '../../../src/features/accounts/brands.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute, queryValue } from '../../../src/platform/postgres/sql.ts';
import { launchChrome } from '../../support/browser.ts';
import { problemsInAllLooks } from '../portal/chrome.ts';
import { type SetupWorld, startSetupWorld } from './setup-world.ts';

/** The pages as a customer sees them, in light and dark, on a phone, a tablet and a desk, with and without scripts. */

let chrome: Browser;

beforeAll(async () => {
  chrome = await launchChrome();
});
afterAll(() => chrome.close());

const FAILURE = {
  step: 'register',
  code: 'registration_refused',
  retryable: true,
  message: 'Upstream did not register the number.',
  upstreamCode: 133_006,
  retryAt: null,
};

const CHOICE = {
  of: 'waba',
  options: [
    { id: '920000000000001', label: 'Fixture Store' },
    { id: '920000000000002', label: 'Fixture Store, second branch with a rather long name' },
  ],
};

/** What a link can look like, as columns of its row. */
const STATES: Record<string, Record<string, unknown>> = {
  working: { state: 'subscribed' },
  choice: { state: 'authorized', choice: CHOICE },
  pin: {
    state: 'failed',
    failure: { ...FAILURE, code: 'pin_required', message: 'The number has a PIN.' },
    phone_number_id: '82',
  },
  failed: { state: 'failed', failure: FAILURE },
  waiting: {
    state: 'failed',
    failure: { ...FAILURE, code: 'registration_rate_limited', retryAt: '2099-01-01T08:00:00Z' },
  },
  done: { state: 'done', attention: ['number_in_review'], waba_id: '92', phone_number_id: '82' },
};

async function put({ database }: SetupWorld, id: string, columns: Record<string, unknown>): Promise<void> {
  const row = { choice: null, failure: null, attention: [], phone_number_id: null, ...columns };
  await execute(
    database,
    `update setup_links set state = :state, choice = cast(:choice as jsonb), failure = cast(:failure as jsonb),
            attention = cast(:attention as text[]), phone_number_id = :phone_number_id, authorized_at = now(), token_sealed = null
      where id = :id`,
    {
      ...row,
      id: id.slice(3),
      choice: row.choice === null ? null : JSON.stringify(row.choice),
      failure: row.failure === null ? null : JSON.stringify(row.failure),
    },
  );
}

async function tooWide(page: Page): Promise<boolean> {
  await page.setViewportSize({ width: 768, height: 900 });
  return await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth');
}

test('every page is readable in all looks, and assistive technology stumbles over nothing', async () => {
  const world = await startSetupWorld();
  const link = await world.link();
  const tenantId = await queryValue<string>(world.database, 'select tenant_id from setup_links', {});
  await world.database.transaction(async (trx) => {
    const brand = { name: 'Acme Messaging', accentColor: '#0b5cad' };
    await setBrand({ database: trx, actor: SYSTEM }, tenantId, brand);
  });
  const context = await chrome.newContext();
  const page = await context.newPage();
  const problems: string[] = [];
  const look = async (name: string) => {
    problems.push(...(await problemsInAllLooks(page, `setup-${name}`)));
    if (await tooWide(page)) problems.push(`${name}: too wide at 768 px`);
  };
  await page.goto(world.origin + link.path);
  expect(await page.textContent('.brand')).toContain('Acme Messaging');
  await look('open');
  await page.getByRole('button', { name: 'Continue to Meta' }).click();
  await page.getByRole('heading', { name: 'Embedded Signup of the sandbox' }).waitFor();
  await page.getByLabel('Finish: a WABA with a new number').check();
  await page.getByRole('button', { name: 'Go on' }).click();
  await page.getByRole('heading', { name: 'Your number is being connected' }).waitFor();
  // A page that loads itself again while it is looked at is another one in the middle of the look.
  await page.route('**/setup/links/*', async (route) => {
    if (route.request().method() !== 'GET') return await route.fallback();
    const response = await route.fetch({ maxRedirects: 0 });
    const { refresh, ...headers } = response.headers();
    await route.fulfill({ response, headers });
  });
  for (const [name, columns] of Object.entries(STATES)) {
    await put(world, link.id, columns);
    await page.goto(`${world.origin}/setup/links/${link.id}`);
    await look(name);
  }
  await page.goto(`${world.origin}/setup/open/${'x'.repeat(43)}`);
  await look('unknown');
  const steps = await world.link({ mode: 'steps' });
  await page.goto(world.origin + steps.path);
  await page.getByRole('button', { name: 'Start' }).click();
  await look('token');
  await page.getByLabel('Id of the WhatsApp Business Account').fill('900000000000202');
  await page.getByLabel('Access token').fill('EAA-pasted');
  await page.getByRole('button', { name: 'Check and continue' }).click();
  await page.getByRole('heading', { name: 'Your number is being connected' }).waitFor();
  await put(world, steps.id, {
    state: 'failed',
    failure: { ...FAILURE, code: 'subscription_failed', step: 'subscribe' },
  });
  await page.goto(`${world.origin}/setup/links/${steps.id}`);
  await page.getByText('The app is subscribed to the account').waitFor();
  await look('steps');
  expect(problems).toEqual([]);
  await context.close();
});

test('a browser without scripts is led to Meta, follows the work and is led back', async () => {
  const world = await startSetupWorld();
  const link = await world.link();
  const context = await chrome.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await context.route('https://crm.example/**', (route) => route.fulfill({ body: 'the product' }));
  await page.goto(world.origin + link.path);
  await page.getByRole('button', { name: 'Continue to Meta' }).click();
  await page.waitForURL(/\/dialog\/oauth/);
  await page.getByRole('button', { name: 'Go on' }).click();
  await page.waitForURL(/\/setup\/links\/sl_\d+$/);
  await put(world, link.id, { state: 'done', attention: [] });
  await page.getByRole('heading', { name: 'Your number is connected' }).waitFor();
  await page.waitForURL(/^https:\/\/crm\.example\/connected\?/);
  expect(new URL(page.url()).searchParams.get('setupLink')).toBe(link.id);
  await context.close();
});
