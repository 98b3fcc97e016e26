/**
 * Takes the animated picture of README out of a stack that runs (`npm start -- --fresh`): a customer writes in the sandbox
 * console, the tenant's server fails, and the portal and the Temporal UI show the delivery until it arrives.
 * Run: npm run film -- [--data-dir .data] [--out docs/screenshots/readme-film.webp] [--keep]
 */

import { statSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { BrowserContext, Page } from 'playwright-core';
import { Film, pointAt } from './screenshots/film-frames.ts';
import { launchChromium, runningStack, signIn } from './screenshots/stack-browser.ts';

const SIZE = { width: 1_005, height: 745 };
/** What the navigation of the portal takes, and that of the Temporal UI. */
const CONSOLE = { left: 195, ...SIZE };
const TEMPORAL = { left: 64, ...SIZE };

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string', default: '.data' },
    out: { type: 'string', default: 'docs/screenshots/readme-film.webp' },
    keep: { type: 'boolean', default: false },
  },
});

const stack = runningStack(values['data-dir']);
const browser = await launchChromium();
const film = new Film();
try {
  await warmUp();
  const context = await browser.newContext({ viewport: windowOf(CONSOLE) });
  const page = await context.newPage();
  await signIn(page, stack, 'admin');
  await page.goto(`${stack.apiUrl}/portal/sandbox`);
  await respondWith(page, '200 OK');
  await messageArrives(page);
  await serverFails(page);
  const { runUrl, deliveryUrl } = await linksOfDelivery(page);
  await deliveryWaits(context, deliveryUrl);
  await runWaits(context, runUrl);
  await serverIsBack(page);
  await deliveryArrived(context, deliveryUrl);
  await runHasEnded(context, runUrl);
  const ms = film.write(values.out);
  const size = `${Math.round(statSync(values.out).size / 1_024)} KB`;
  process.stdout.write(`${values.out}: ${ms / 1_000} s, ${size}\n`);
} finally {
  if (values.keep) process.stdout.write(`frames: ${film.directory()}\n`);
  else film.remove();
  await browser.close();
}

function windowOf({ left, width, height }: typeof CONSOLE) {
  return { width: left + width, height };
}

/** Another tenant's customer writes first: the first message after a start takes longer than all others. */
async function warmUp(): Promise<void> {
  const [, other] = stack.tenants;
  for (let n = 0; n < 3; n += 1) {
    const response = await fetch(`${stack.sandboxUrl}/sandbox/inbound`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        from: '12025550161',
        name: 'Kim Sample',
        type: 'text',
        body: 'Good morning!',
        phoneNumberId: other?.phoneNumberIds[0],
      }),
    });
    if (!response.ok) throw new Error(`the sandbox returned ${response.status}: ${await response.text()}`);
  }
}

async function messageArrives(page: Page): Promise<void> {
  film.say('A customer writes to the business');
  await film.take(page, CONSOLE, 600);
  await write(page, 'Hello!');
  await newest(page, 'Hello!').getByText('verified').waitFor();
  film.say('The tenant’s server has the signed webhook');
  await film.take(page, CONSOLE, 1_500);
}

async function serverFails(page: Page): Promise<void> {
  film.say('The tenant’s server fails: it returns 500');
  await pointAt(page, page.getByRole('button', { name: '500' }));
  await film.take(page, CONSOLE, 500);
  await respondWith(page, '500');
  await film.take(page, CONSOLE, 500);
  await write(page, 'Is my parcel on its way?');
  await newest(page, 'parcel').getByText('returned 500').waitFor();
  film.say('The delivery is retried by the schedule');
  await film.take(page, CONSOLE, 800);
  // Behind the second attempt there are 30 seconds in which nothing changes.
  await newest(page, 'attempt 2').getByText('next attempt').waitFor({ timeout: 15_000 });
  await film.take(page, CONSOLE, 1_200);
}

async function linksOfDelivery(page: Page): Promise<{ runUrl: string; deliveryUrl: string }> {
  await newest(page, 'attempt 2').locator('summary').click();
  const links = page.locator('#received');
  const run = links.locator('a[href*="/workflows/"]').first();
  const delivery = links.locator('a[href*="/deliveries/"]').first();
  await run.waitFor();
  await pointAt(page, delivery);
  film.say('Its delivery is one click away');
  await film.take(page, CONSOLE, 1_000);
  const [runUrl, deliveryPath] = await Promise.all([run, delivery].map((link) => link.getAttribute('href')));
  return { runUrl: runUrl ?? '', deliveryUrl: new URL(deliveryPath ?? '', page.url()).href };
}

async function openPortal(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.setViewportSize(windowOf(CONSOLE));
  await page.goto(url);
  return page;
}

async function deliveryWaits(context: BrowserContext, url: string): Promise<void> {
  const page = await openPortal(context, url);
  await page.getByText('The server returned 500').first().waitFor();
  film.say('Portal: each attempt with the response, and when the next one is made');
  await film.take(page, CONSOLE, 2_800);
  await page.close();
}

async function deliveryArrived(context: BrowserContext, url: string): Promise<void> {
  const page = await openPortal(context, url);
  await page.getByText('Delivered').first().waitFor();
  film.say('Portal: attempt 3 was delivered');
  await film.take(page, CONSOLE, 2_000);
  await page.close();
}

async function runWaits(context: BrowserContext, runUrl: string): Promise<void> {
  const run = await openTemporal(context, runUrl);
  await run.getByText('Pending Activities').first().click();
  await run.getByText('returned 500').first().waitFor();
  await run.waitForTimeout(1_000);
  film.say('Temporal UI, for operators: its run waits, with the reason');
  await film.take(run, TEMPORAL, 2_700);
  await run.close();
}

async function openTemporal(context: BrowserContext, url: string): Promise<Page> {
  const run = await context.newPage();
  await run.setViewportSize(windowOf(TEMPORAL));
  await run.goto(url);
  return run;
}

async function serverIsBack(page: Page): Promise<void> {
  film.say('The server is fixed');
  await pointAt(page, page.getByRole('button', { name: '200 OK' }));
  await respondWith(page, '200 OK');
  await film.take(page, CONSOLE, 700);
  const row = newest(page, 'attempt 3');
  await row.waitFor({ timeout: 60_000 });
  await page.waitForTimeout(1_500);
  film.say('Attempt 3 is delivered');
  await film.take(page, CONSOLE, 1_500);
}

async function runHasEnded(context: BrowserContext, url: string): Promise<void> {
  const run = await openTemporal(context, url);
  await run.getByText('Completed').first().waitFor();
  await run.waitForTimeout(1_500);
  film.say('Temporal UI: the run has ended with its delivery');
  await film.take(run, TEMPORAL, 2_000);
}

/** Types a message in a few frames and sends it. */
async function write(page: Page, text: string): Promise<void> {
  const field = page.locator('#message');
  const steps = 4;
  for (let step = 1; step <= steps; step += 1) {
    await field.fill(text.slice(0, Math.ceil((text.length * step) / steps)));
    await film.take(page, CONSOLE, 130);
  }
  await pointAt(page, page.getByRole('button', { name: 'Send', exact: true }));
  await film.take(page, CONSOLE, 250);
  await page.keyboard.press('Enter');
}

async function respondWith(page: Page, label: string): Promise<void> {
  await page.getByRole('button', { name: label }).click();
  await page.locator('#answers [aria-pressed="true"]').filter({ hasText: label }).waitFor();
}

/** The newest webhook in the console, once it has this text. */
function newest(page: Page, text: string) {
  return page.locator('#received > li').first().filter({ hasText: text });
}
