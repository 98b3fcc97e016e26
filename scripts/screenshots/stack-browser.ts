import { existsSync, readFileSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import {
  descriptionFile,
  type EmbeddedDescription,
} from '../../src/platform/local-stack/embedded-description.ts';
import { systemChromium } from '../system-chromium.ts';

/** The stack that `npm start` runs on a data directory; ends the process when there is none. */
export function runningStack(dataDir: string): EmbeddedDescription {
  const path = descriptionFile(dataDir);
  if (!existsSync(path)) {
    process.stderr.write(`Nothing runs: ${path} is missing. Run npm start first.\n`);
    process.exit(1);
  }
  return JSON.parse(readFileSync(path, 'utf8')) as EmbeddedDescription;
}

/** Chromium as the system has it; otherwise the one that Playwright finds. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = systemChromium();
  return await chromium.launch({ ...(executablePath && { executablePath }), args: ['--no-sandbox'] });
}

/** Signs a user of the demonstration in. */
export async function signIn(
  page: Page,
  stack: EmbeddedDescription,
  role: 'operator' | 'admin',
): Promise<void> {
  const user = stack.portalUsers.find((candidate) => candidate.role === role);
  if (user === undefined) throw new Error(`the demonstration has no ${role}`);
  await page.goto(`${stack.apiUrl}/portal/sign-in`);
  await page.getByLabel('E-mail address').fill(user.email);
  await page.getByLabel('Password').fill(user.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}
