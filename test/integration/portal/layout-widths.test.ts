import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Viewer } from '../../../src/api/portal/access/viewer.ts';
import { ASSET_DIRECTORY, ASSET_PREFIX } from '../../../src/api/portal/asset-urls.ts';
import { statRow } from '../../../src/api/portal/components/table.ts';
import { html } from '../../../src/api/portal/markup.ts';
import { renderPage } from '../../../src/api/portal/page.ts';
import { launchChrome } from '../../support/browser.ts';
import { picture } from './chrome.ts';

const WIDTHS = [360, 390, 768, 1_024, 1_100, 1_180, 1_280, 1_440, 1_600, 1_920];

/** As many as pages have beside each other. */
const FIGURES = [4, 5, 6, 7, 8];

const VIEWER: Viewer = {
  csrfToken: 'token',
  userId: '1',
  email: 'op@example.com',
  name: 'Op',
  role: 'operator',
  tenantId: null,
  places: [],
  passwordLinkBy: null,
  passwordLink: null,
  begunBy: 'password',
  hasSecondFactor: false,
  isProofFresh: true,
  provenAt: new Date(),
  expiresAt: new Date(),
  proofs: { password: true, totp: false, identity: false },
  notices: [],
  link: null,
  step: 'whole',
  isOperatorAddress: true,
};

let chrome: Browser;
let page: Page;

beforeAll(async () => {
  chrome = await launchChrome();
  page = await chrome.newPage();
  const figure = (n: number) => ({
    label: `Failed permanently, ${n} h`,
    value: '1,234',
    note: 'no failures',
  });
  const rows = FIGURES.map((count) => statRow(Array.from({ length: count }, (_, n) => figure(n))));
  const waba = { wabaId: '900000000000101', businessName: 'Fixture Store' };
  const views = [{ waba }, { waba: null }].map((place) =>
    renderPage({
      title: 'Figures',
      viewer: VIEWER,
      hasSandbox: true,
      pendingApprovals: 12,
      body: html`${rows}`,
      ...place,
    }),
  );
  await page.route('http://portal.example/**', async (route) => {
    const { pathname } = new URL(route.request().url());
    if (pathname.startsWith(ASSET_PREFIX))
      await route.fulfill({
        path: new URL(pathname.slice(ASSET_PREFIX.length), ASSET_DIRECTORY).pathname,
      });
    else
      await route.fulfill({ contentType: 'text/html', body: views[pathname === '/operator' ? 1 : 0] ?? '' });
  });
});
afterAll(() => chrome.close());

/** Entries of the menu whose words take more than one line. */
const WRAPPED = `[...document.querySelectorAll('.side li a')].filter((entry) => {
  const range = document.createRange();
  range.selectNodeContents(entry.firstChild);
  return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1;
}).map((entry) => entry.innerText)`;

/** Of each row of figures, how many stand in each line, and whether one is outside its row. */
const LINES = `[...document.querySelectorAll('.stats')].map((row) => {
  const tops = [...row.children].map((figure) => Math.round(figure.getBoundingClientRect().top));
  return [...new Set(tops)].map((top) => tops.filter((one) => one === top).length);
})`;

const IS_WIDER = 'document.documentElement.scrollWidth > innerWidth';

test.each(WIDTHS)(
  'at a width of %i, entries of the menu have one line, and no figure stands alone',
  async (width) => {
    for (const place of ['tenant', 'operator']) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(`http://portal.example/${place}`);
      expect(await page.evaluate(IS_WIDER)).toBe(false);
      expect(await page.locator('.side li a').count()).toBeGreaterThan(10);
      // On a phone the menu is behind a button.
      if (await page.locator('.menu-label').isVisible()) await page.locator('.menu-label').click();
      expect(await page.evaluate<string[]>(WRAPPED)).toEqual([]);
      const lines = await page.evaluate<number[][]>(LINES);
      expect(lines.map((row) => row.reduce((sum, n) => sum + n, 0))).toEqual(FIGURES);
      // Two figures beside each other: an odd last one has the width of both.
      expect(lines.filter(([most = 0, ...others]) => most > 2 && others.includes(1))).toEqual([]);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await picture(page, `widths-${place}-${width}-${colorScheme}`);
      }
    }
  },
);
