import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Cookie, Page } from 'playwright-core';
import type { EmbeddedDescription } from '../../src/platform/local-stack/embedded-description.ts';
import { launchChromium, signIn } from './stack-browser.ts';

/** One picture. */
export type Shot = {
  name: string;
  /** Of which server the path is. */
  of?: 'portal' | 'temporal';
  who: 'operator' | 'admin' | null;
  path: string;
  isDark?: boolean;
  isPhone?: boolean;
  /** Cuts a long page, for the README. */
  maxHeight?: number;
  /** What is clicked before. */
  prepare?: (page: Page) => Promise<void>;
};

/** Where pictures go; only those whose name contains `only`. */
export type Album = { out: string; only: string; format: string };

export type Camera = { take: (shot: Shot) => Promise<void>; close: () => Promise<void> };

const MAX_HEIGHT = 1_500;
const WEBP_QUALITY = 80;

/** Opens a browser that takes pictures of a stack that runs. */
export async function openCamera(stack: EmbeddedDescription, album: Album): Promise<Camera> {
  const chrome = await launchChromium();
  const sessions = new Map<string, Cookie[]>();
  mkdirSync(album.out, { recursive: true });
  const cookiesOf = async (role: 'operator' | 'admin') => {
    const cookies = sessions.get(role) ?? (await cookiesOfNewSession(chrome, stack, role));
    sessions.set(role, cookies);
    return cookies;
  };
  const take = async (shot: Shot) => {
    const { name, of = 'portal', who, path, isDark = false, isPhone = false, maxHeight = MAX_HEIGHT } = shot;
    if (!name.includes(album.only)) return;
    const viewport = isPhone ? { width: 390, height: 844 } : { width: 1280, height: 800 };
    const context = await chrome.newContext({ viewport, colorScheme: isDark ? 'dark' : 'light' });
    if (who !== null) await context.addCookies(await cookiesOf(who));
    const page = await context.newPage();
    await page.goto(`${of === 'portal' ? stack.apiUrl : stack.temporalUiUrl}${path}`);
    await shot.prepare?.(page);
    await page.waitForTimeout(300);
    const height = Math.min(maxHeight, await page.evaluate<number>('document.documentElement.scrollHeight'));
    await page.setViewportSize({ width: viewport.width, height: Math.max(viewport.height, height) });
    const file = join(album.out, `${name}.${album.format}`);
    writeFileSync(file, await pictureOf(page, album.format));
    process.stdout.write(`${file}\n`);
    await context.close();
  };
  return { take, close: () => chrome.close() };
}

/** By the browser's own protocol, which writes WebP too: a third of the size of PNG. */
async function pictureOf(page: Page, format: string): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', {
    format: format === 'png' ? 'png' : 'webp',
    quality: WEBP_QUALITY,
  });
  return Buffer.from(data, 'base64');
}

/** The cookies of a session, which each of them begins once. */
async function cookiesOfNewSession(
  chrome: Browser,
  stack: EmbeddedDescription,
  role: 'operator' | 'admin',
): Promise<Cookie[]> {
  const context = await chrome.newContext();
  const page = await context.newPage();
  await signIn(page, stack, role);
  const cookies = await context.cookies();
  await context.close();
  return cookies;
}
