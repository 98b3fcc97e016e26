/**
 * Takes pictures of the portal's pages for the documentation, out of a stack that runs (`npm start`).
 * Run: npm run screenshots -- [--data-dir .data] [--out docs/screenshots] [--only overview] [--format png]
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Browser, type Cookie, chromium, type Page } from 'playwright-core';
import type { EmbeddedDescription } from '../src/platform/local-stack/embedded-description.ts';
import { livePortal } from './screenshots/live-portal.ts';
import { type Shot, shotsOf } from './screenshots/shots.ts';

const CHROMIUM = [process.env.HELIOGRAPH_CHROMIUM ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser'];
const MAX_HEIGHT = 1_500;
const WEBP_QUALITY = 80;

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string', default: '.data' },
    out: { type: 'string', default: 'docs/screenshots' },
    only: { type: 'string', default: '' },
    format: { type: 'string', default: 'webp' },
  },
});

const sessions = new Map<string, Cookie[]>();

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
  const { name, who, path, isDark = false, isPhone = false, maxHeight = MAX_HEIGHT } = shot;
  const viewport = isPhone ? { width: 390, height: 844 } : { width: 1280, height: 800 };
  const context = await chrome.newContext({ viewport, colorScheme: isDark ? 'dark' : 'light' });
  if (who !== null) await context.addCookies(await cookiesOf(chrome, who));
  const page = await context.newPage();
  await page.goto(`${stack.apiUrl}${path}`);
  await shot.prepare?.(page);
  await page.waitForTimeout(300);
  const height = Math.min(maxHeight, await page.evaluate<number>('document.documentElement.scrollHeight'));
  await page.setViewportSize({ width: viewport.width, height: Math.max(viewport.height, height) });
  const file = join(values.out, `${name}.${values.format}`);
  writeFileSync(file, await pictureOf(page));
  process.stdout.write(`${file}\n`);
  await context.close();
}

/** By the browser's own protocol, which writes WebP too: a third of the size of PNG. */
async function pictureOf(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const format = values.format === 'png' ? 'png' : 'webp';
  const { data } = await session.send('Page.captureScreenshot', { format, quality: WEBP_QUALITY });
  return Buffer.from(data, 'base64');
}

/** Of a session that each of them begins once. */
async function cookiesOf(chrome: Browser, role: 'operator' | 'admin'): Promise<Cookie[]> {
  const known = sessions.get(role);
  if (known !== undefined) return known;
  const context = await chrome.newContext();
  const page = await context.newPage();
  const user = stack.portalUsers.find((one) => one.role === role);
  if (user === undefined) throw new Error(`the demonstration has no ${role}`);
  await page.goto(`${stack.apiUrl}/portal/sign-in`);
  await page.getByLabel('E-mail address').fill(user.email);
  await page.getByLabel('Password').fill(user.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  const cookies = await context.cookies();
  sessions.set(role, cookies);
  await context.close();
  return cookies;
}
