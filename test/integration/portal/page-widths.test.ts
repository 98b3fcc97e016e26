import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChrome } from '../../support/browser.ts';
import { apiOfFile, WABA } from '../api/api-harness.ts';
import { listen, picture, signedInWindow } from './chrome.ts';
import { liveIn } from './lived-in.ts';

const WIDTHS = [390, 768, 1280];

/** What must be scrolled sideways to be read: the page, or a table in it. */
const TOO_WIDE = `[document.documentElement, ...document.querySelectorAll('.table')]
  .filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.scrollWidth + ' of ' + box.clientWidth + ' px: ' + (box.getAttribute('aria-label') ?? 'the page'))`;

/** Files, texts of the documentation, and what answers scripts. */
const BESIDE = /\/portal\/(?:assets|sign|runbooks\/)|\/tests\//;

const api = apiOfFile();
let chrome: Browser;
let origin: string;

beforeAll(async () => {
  await liveIn(api);
  origin = await listen(api.app);
  chrome = await launchChrome();
});
afterAll(() => chrome.close());

const kindOf = (path: string) =>
  path.replace(/\?.*/, '').replaceAll(/\/(?:\w+_)?[0-9a-f]*\d[0-9a-f]*(?=\/|$)/g, '/:id');

async function widthsOf(page: Page, path: string): Promise<string[]> {
  const found: string[] = [];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    const tooWide = await page.evaluate<string[]>(TOO_WIDE);
    found.push(...tooWide.map((what) => `${path} at ${width} px, ${what}`));
    await picture(page, `widths${path.replaceAll(/\W+/g, '-')}-${width}`);
  }
  return found;
}

/** One page of each kind that links lead to, among those that begin so. */
async function walk(
  page: Page,
  starts: readonly string[],
  among: RegExp,
): Promise<{ paths: string[]; problems: string[] }> {
  const paths = [...starts];
  const kinds = new Set(paths.map(kindOf));
  const problems: string[] = [];
  for (const path of paths) {
    const response = await page.goto(origin + path).catch((error) => {
      if (!/Download is starting/.test(String(error))) throw error;
      return null;
    });
    if (response?.status() !== 200) continue;
    problems.push(...(await widthsOf(page, path)));
    const links = await page
      .locator('a[href^="/portal"]:not([download])')
      .evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''));
    for (const link of links) {
      if (!among.test(link) || BESIDE.test(link) || kinds.has(kindOf(link))) continue;
      kinds.add(kindOf(link));
      paths.push(link);
    }
  }
  return { paths, problems };
}

test.each([
  ['a tenant', 'admin@store.example', [`/portal/w/${WABA}`], /^\/portal(?!\/operator)/],
  ['operators', 'op@host.example', [`/portal/operator/wabas/${WABA}`], /^\/portal\/operator/],
])(
  'no page of %s is scrolled sideways on a phone, a tablet or a desk',
  async (_name, email, starts, among) => {
    const context = await signedInWindow(chrome, origin, email);
    const page = await context.newPage();
    const { paths, problems } = await walk(page, starts, among);
    expect(problems).toEqual([]);
    expect(paths.length).toBeGreaterThan(15);
    await context.close();
  },
);
