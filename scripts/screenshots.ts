/**
 * Takes pictures of the portal's pages for the documentation, out of a stack that runs (`npm start`).
 * Run: npm run screenshots -- [--data-dir .data] [--out docs/screenshots] [--only overview]
 */

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { EmbeddedDescription } from '../src/embedded/embedded-description.ts';
import { livePortal } from './screenshots/live-portal.ts';
import { type Shot, shotsOf } from './screenshots/shots.ts';

const CHROMIUM = [process.env.HELIOGRAPH_CHROMIUM ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser'];
const MAX_HEIGHT = 1_500;
const JPEG_QUALITY = 80;

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string', default: '.data' },
    out: { type: 'string', default: 'docs/screenshots' },
    only: { type: 'string', default: '' },
  },
});

const descriptionPath = join(values['data-dir'], 'embedded.json');
if (!existsSync(descriptionPath)) {
  process.stderr.write(`Nothing runs: ${descriptionPath} is missing. Run npm start first.\n`);
  process.exit(1);
}
const stack = JSON.parse(readFileSync(descriptionPath, 'utf8')) as EmbeddedDescription;
const executablePath = CHROMIUM.find((path) => path !== '' && existsSync(path));
const browser = await chromium.launch({ ...(executablePath && { executablePath }), args: ['--no-sandbox'] });
try {
  const lived = await livePortal(stack);
  mkdirSync(values.out, { recursive: true });
  for (const shot of shotsOf(lived)) {
    if (!shot.name.includes(values.only)) continue;
    await take(browser, shot);
  }
} finally {
  await browser.close();
}

async function take(chrome: Browser, shot: Shot): Promise<void> {
  const { name, who, path, isDark = false, isPhone = false } = shot;
  const viewport = isPhone ? { width: 390, height: 844 } : { width: 1280, height: 800 };
  const context = await chrome.newContext({ viewport, colorScheme: isDark ? 'dark' : 'light' });
  const page = await context.newPage();
  if (who !== null) await signIn(page, who);
  await page.goto(`${stack.apiUrl}${path}`);
  await shot.prepare?.(page);
  await page.waitForTimeout(300);
  const height = Math.min(MAX_HEIGHT, await page.evaluate<number>('document.documentElement.scrollHeight'));
  await page.setViewportSize({ width: viewport.width, height: Math.max(viewport.height, height) });
  const file = join(values.out, `${name}.jpg`);
  await page.screenshot({ path: file, type: 'jpeg', quality: JPEG_QUALITY });
  process.stdout.write(`${file}\n`);
  await context.close();
}

async function signIn(page: Page, role: 'operator' | 'admin'): Promise<void> {
  const user = stack.portalUsers.find((one) => one.role === role);
  if (user === undefined) throw new Error(`the demonstration has no ${role}`);
  await page.goto(`${stack.apiUrl}/portal/sign-in`);
  await page.getByLabel('E-mail address').fill(user.email);
  await page.getByLabel('Password').fill(user.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}
