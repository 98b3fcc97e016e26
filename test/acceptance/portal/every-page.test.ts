import { AxeBuilder } from '@axe-core/playwright';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { markupProblems } from '../../integration/portal/markup-problems.ts';
import { launchChrome } from '../../support/browser.ts';
import { api, writeAsCustomer } from '../support/customer.ts';
import { portalWindow } from '../support/portal-window.ts';
import { description } from '../support/stack.ts';
import { startTenantServer, type TenantServer } from '../support/tenant-server.ts';

const WABA = '900000000000101';
const TENANT = [
  '',
  '/endpoints',
  '/endpoints/new',
  '/deliveries',
  '/replays',
  '/replays/new',
  '/conversations',
].concat([
  '/event-types',
  '/event-types/order',
  '/keys',
  '/keys/new',
  '/audit',
  '/users',
  '/endpoints/alerts',
  '/data',
  '/erasures',
]);
const OPERATOR = [
  'health',
  'tenants',
  'approvals',
  'deliveries',
  'users',
  'settings',
  'audit',
  'erasures',
  `wabas/${WABA}`,
];

/** On these pages the first link that looks so is followed too. */
const ONWARD = [
  [/\/endpoints$/, /\/endpoints\/\d+$/],
  [/\/endpoints\/\d+$/, /\/endpoints\/\d+\/deliveries$/],
  [/\/endpoints\/\d+\/deliveries$/, /\/endpoints\/\d+\/settings$/],
  [/\/endpoints\/\d+\/settings$/, /\/endpoints\/\d+\/security$/],
  [/\/endpoints\/\d+\/security$/, /\/endpoints\/\d+\/edit$/],
  [/\/w\/\d+\/deliveries$/, /\/deliveries\/dlv_/],
  [/\/conversations$/, /\/conversations\/\d+$/],
  [/\/replays$/, /\/replays\/\d+$/],
  [/\/operator\/tenants$/, /\/tenants\/\d+$/],
] as const;

/** Some dozens of pages, each looked at in four ways: ten seconds each on a machine that is busy otherwise. */
const MANY_PAGES = { timeout: 900_000 };

let chrome: Browser;
let tenant: TenantServer;
let endpointId: string;

beforeAll(async () => {
  chrome = await launchChrome();
  await writeAsCustomer('12025550143', { type: 'text', text: { body: 'Do you have this in blue?' } });
  // A replay, to an endpoint that other tests do not look at.
  tenant = await startTenantServer();
  const endpoint = { url: `${tenant.url}/webhooks` };
  endpointId = (await api<{ id: string }>('POST', '/api/external/webhook-endpoints', endpoint)).id;
  const { data } = await api<{ data: { id: string }[] }>('GET', '/api/external/events?type=message&limit=1');
  await api('POST', `/api/external/events/${data[0]?.id}/replay`, { endpointId });
});
afterAll(async () => {
  await api('DELETE', `/api/external/webhook-endpoints/${endpointId}`);
  await tenant.goAway();
  await chrome.close();
});

/** The height of the bar at the top, and rows of tables whose last cell is beyond the edge of a phone, and parts of tables that would be none in Safari. */
const ON_A_PHONE = `[
  ...[...document.querySelectorAll('header.top')].map((bar) => bar.offsetHeight).filter((height) => height > 64)
    .map((height) => 'the bar at the top is ' + height + ' pixels high'),
  ...[...document.querySelectorAll('.table:not(.slim) tbody tr')]
    .filter((row) => [...row.cells].some((cell) => cell.getBoundingClientRect().right > innerWidth))
    .map((row) => 'cut on a phone: ' + row.innerText.slice(0, 80)),
  ...[...document.querySelectorAll('.table :is(table, thead, tbody, tr, th, td):not([role])')]
    .map((part) => 'no table in Safari: ' + part.tagName),
]`;

/** Tables that must be scrolled to be read, by their first words; on a phone small ones may be. */
const CUT_TABLES = `[...document.querySelectorAll('table')]
  .filter(({ parentElement: box }) => box.scrollWidth > box.clientWidth + 1)
  .map((table) => table.parentElement.scrollWidth + ' px: ' + table.innerText.slice(0, 80)
     + [...table.querySelectorAll('tbody tr:first-child td')].map((cell) => cell.clientWidth + ' ' + cell.innerText).join(' | '))`;

/** Boxes in the page that must be scrolled down by themselves, other than code and the numbers behind a chart. */
const INNER_SCROLL = `[...document.querySelectorAll('main :not(pre, textarea, select, details *)')]
  .filter((box) => /auto|scroll/.test(getComputedStyle(box).overflowY) && box.scrollHeight > box.clientHeight + 1)
  .map((box) => 'scrolls in itself: ' + box.outerHTML.slice(0, 80))`;

/** What is wrong with a page, light and dark, wide and narrow. */
async function problemsIn(page: Page): Promise<string[]> {
  const found = await markupProblems(await page.content());
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    // Without frames to merge there is no need of a second page each time.
    const axe = new AxeBuilder({ page }).setLegacyMode(true);
    const { violations } = await (colorScheme === 'light'
      ? axe
      : axe.withRules(['color-contrast'])
    ).analyze();
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    found.push(...serious.map(({ id, nodes }) => `${colorScheme}: ${id}: ${nodes[0]?.html}`));
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const width = await page.evaluate<number>('document.documentElement.scrollWidth');
  if (width > 390) found.push(`${width} pixels wide on a phone`);
  found.push(...(await page.evaluate<string[]>(ON_A_PHONE)));
  await page.setViewportSize({ width: 1280, height: 900 });
  found.push(...(await page.evaluate<string[]>(INNER_SCROLL)));
  found.push(...(await page.evaluate<string[]>(CUT_TABLES)).map((table) => `a table is cut: ${table}`));
  return found;
}

async function walk(page: Page, paths: readonly string[]): Promise<Record<string, string[]>> {
  const refused: string[] = [];
  page.on('console', (line) => {
    if (/Content Security Policy/i.test(line.text())) refused.push(line.text());
  });
  const problems: Record<string, string[]> = {};
  const queue = [...paths];
  for (const path of queue) {
    await page.goto(`${description().apiUrl}${path}`);
    const found = [...(await problemsIn(page)), ...refused.splice(0)];
    if (found.length > 0) problems[path] = found;
    const onward = ONWARD.find(([from]) => from.test(path))?.[1];
    const links = await page
      .locator('main a')
      .evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''));
    const next = onward && links.find((link) => onward.test(link));
    if (next !== undefined) queue.push(next);
    else if (onward !== undefined) problems[path] = ['there is nothing to follow'];
  }
  return problems;
}

test.concurrent('every page of a tenant is sound, light and dark, wide and narrow', MANY_PAGES, async () => {
  const page = await portalWindow(chrome, 'admin');
  const base = `/portal/w/${WABA}`;
  expect(
    await walk(page, [
      '/portal/account',
      '/portal/alerts',
      '/portal/runbooks',
      ...TENANT.map((path) => base + path),
    ]),
  ).toEqual({});
  await page.context().close();
});

test.concurrent(
  'every page of the operator is sound, light and dark, wide and narrow',
  MANY_PAGES,
  async () => {
    const page = await portalWindow(chrome, 'operator');
    expect(
      await walk(
        page,
        OPERATOR.map((path) => `/portal/operator/${path}`),
      ),
    ).toEqual({});
    await page.context().close();
  },
);
