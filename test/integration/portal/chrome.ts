import { existsSync, mkdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { AxeBuilder } from '@axe-core/playwright';
import type { FastifyInstance } from 'fastify';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { markupProblems } from './markup-problems.ts';
import { PASSWORD } from './portal-browser.ts';

const CHROMIUM = [process.env.HELIOGRAPH_CHROMIUM ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser'];
const QUIET = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'];

/** Starts the browser of a test file. */
export async function launchChrome(): Promise<Browser> {
  const executablePath = CHROMIUM.find((path) => path !== '' && existsSync(path));
  if (executablePath === undefined) throw new Error('no Chromium: install it or set HELIOGRAPH_CHROMIUM');
  return await chromium.launch({ executablePath, args: QUIET });
}

/** As `markupProblems`, and what assistive technology stumbles over; axe needs scripts. */
export async function problemsOf(page: Page, hasScripts: boolean): Promise<string[]> {
  const found = await markupProblems(await page.content());
  if (!hasScripts) return found;
  const { violations } = await new AxeBuilder({ page }).analyze();
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return [...found, ...serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)];
}

/** Has the app listen, and returns its origin. */
export async function listen(app: FastifyInstance): Promise<string> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

/** A browser window in which somebody has signed in. */
export async function signedInWindow(
  chrome: Browser,
  origin: string,
  email: string,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<BrowserContext> {
  const context = await chrome.newContext(options);
  const page = await context.newPage();
  await page.goto(`${origin}/portal/sign-in`);
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  await page.close();
  return context;
}

/** Takes a picture of a page, when the tests are asked for pictures. */
export async function picture(page: Page, name: string): Promise<void> {
  const directory = process.env.HELIOGRAPH_TEST_PICTURES;
  if (directory === undefined) return;
  mkdirSync(directory, { recursive: true });
  await page.screenshot({ path: `${directory}/${name}.png`, fullPage: true });
}
