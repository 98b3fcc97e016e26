import { mkdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { AxeBuilder } from '@axe-core/playwright';
import type { FastifyInstance } from 'fastify';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { markupProblems } from './markup-problems.ts';
import { PASSWORD } from './portal-browser.ts';

/** As `markupProblems`, and what assistive technology stumbles over; axe needs scripts. */
export async function problemsOf(page: Page, hasScripts: boolean): Promise<string[]> {
  const found = await markupProblems(await page.content());
  return hasScripts ? [...found, ...(await axeProblems(new AxeBuilder({ page })))] : found;
}

async function axeProblems(axe: AxeBuilder): Promise<string[]> {
  // Without frames to merge there is no need of a second page each time.
  const { violations } = await axe.setLegacyMode(true).analyze();
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

const LOOKS = [
  { name: 'light', colorScheme: 'light', width: 1_280 },
  { name: 'dark', colorScheme: 'dark', width: 1_280 },
  { name: 'phone', colorScheme: 'light', width: 390 },
] as const;

/**
 * What is wrong with a page, in light, in dark and on a phone, and takes its pictures. The markup is the same in all
 * of them, so that only colours are looked at again in the dark, and widths on the phone.
 */
export async function problemsInAllLooks(page: Page, name: string): Promise<string[]> {
  const show = async ({ colorScheme, width }: (typeof LOOKS)[number]) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
  };
  const problems: string[] = [];
  for (const look of LOOKS) {
    await show(look);
    if (!(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))) {
      problems.push(`${name}, ${look.name}: too wide`);
    }
    const found =
      look.name === 'light'
        ? await problemsOf(page, true)
        : look.name === 'dark'
          ? await axeProblems(new AxeBuilder({ page }).withRules(['color-contrast']))
          : [];
    problems.push(...found.map((problem) => `${name}, ${look.name}: ${problem}`));
  }
  // Pictures leave styles behind.
  for (const look of LOOKS) {
    await show(look);
    await picture(page, `${name}-${look.name}`);
  }
  // On a phone, "Sign out" is behind the menu: what follows goes on at a desk.
  await show(LOOKS[0]);
  return problems;
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
