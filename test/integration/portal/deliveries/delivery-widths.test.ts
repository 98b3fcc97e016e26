import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { launchChrome } from '../../../support/browser.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { startTestApi, WABA } from '../../api/api-harness.ts';
import { listen, picture, signedInWindow } from '../chrome.ts';
import { addDelivery } from '../delivery-fixtures.ts';
import { addUser, tenantOf } from '../portal-browser.ts';

const LONG_HOST = `${'w'.repeat(60)}.${'m'.repeat(60)}.example`;
const URLS = [
  `https://${LONG_HOST}/hooks/orders`,
  `https://${LONG_HOST}/hooks/payments`,
  'https://shop.example/',
];

let chrome: Browser;

beforeAll(async () => {
  chrome = await launchChrome();
});
afterAll(() => chrome.close());

/** A list with everything that makes its rows wide. */
async function start() {
  const api = await startTestApi();
  const { database } = api;
  const tenantId = await tenantOf(database, WABA);
  await execute(database, 'update tenants set business_name = :repeat where id = :tenantId', {
    repeat: 'W'.repeat(100),
    tenantId,
  });
  const endpoints: { id: string; url: string }[] = [];
  for (const url of URLS) endpoints.push({ id: (await addEndpoint(database, WABA, url)).id, url });
  const gone = (await addEndpoint(database, WABA, `https://gone.${LONG_HOST}/`)).id;
  const error = `${'w'.repeat(24)}: ${'m'.repeat(200)}`;
  const eventId = (name: string) => `wamid.${name.repeat(60)}`;
  const failed = [{ status: null, errorClass: 'w'.repeat(24), errorMessage: 'm', durationMs: 123_456 }];
  await addDelivery(database, {
    eventId: eventId('Failed'),
    type: 'media.ready',
    state: 'failed',
    error,
    attempts: failed,
  });
  await addDelivery(database, { eventId: eventId('Pending'), state: 'pending', error, attempts: failed });
  await addDelivery(database, { eventId: eventId('Waiting'), state: 'pending', attempts: [] });
  await execute(database, "update deliveries set replay_id = 1, attempts = 1234 where state = 'failed'");
  await execute(database, 'delete from delivery_queue where endpoint_id = :gone', { gone });
  await execute(database, 'delete from webhook_endpoints where id = :gone', { gone });
  const name = 'W'.repeat(80);
  await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId, name });
  await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null, name });
  return { origin: await listen(api.app), endpoints, gone };
}

type Cell = { text: string; clipped: string[] };

/** The cells of the column of endpoints, with the texts of which a part is not shown. */
const CELLS = `(() => {
  const table = document.querySelector('.table[aria-label="Deliveries"] table');
  const heads = [...table.querySelectorAll('th')].map((head) => head.innerText);
  return [...table.querySelectorAll('tbody tr')].map((row) => {
    const cell = row.children[heads.indexOf('Endpoint')];
    const parts = [...cell.querySelectorAll('span')];
    return { text: cell.innerText,
             clipped: parts.filter((part) => part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflow === 'hidden')
                           .map((part) => part.innerText) };
  });
})()`;

const CUT = `(() => {
  const box = document.querySelector('.table[aria-label="Deliveries"]');
  return Math.max(0, box.scrollWidth - box.clientWidth);
})()`;

test.each([
  ['a tenant', 'admin@store.example', `/portal/w/${WABA}/deliveries`],
  ['operators', 'op@host.example', '/portal/operator/deliveries'],
])(
  'the list of deliveries of %s fits 1,280 px whatever it shows, and says which endpoint',
  async (name, email, path) => {
    const { origin, endpoints, gone } = await start();
    const context = await signedInWindow(chrome, origin, email, { viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    await page.goto(`${origin}${path}`);
    await picture(page, `deliveries-of-${name.replace(' ', '-')}`);
    expect(await page.evaluate<number>(CUT)).toBe(0);
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(1280);
    const cells = await page.evaluate<Cell[]>(CELLS);
    expect(cells).toHaveLength(12);
    for (const { id, url } of endpoints) {
      const [, host = '', rest = ''] = /^https:\/\/([^/]+)(.*)$/.exec(url) ?? [];
      const own = cells.filter(({ text }) => text.includes(`${id}: ${rest || '/'}`));
      expect(own.length, url).toBe(3);
      for (const { text, clipped } of own) {
        expect(text).toContain(host);
        // The start of a long host and of a long path shows; the rest is in their titles.
        expect(clipped.filter((part) => part !== host && part !== `${id}: ${rest}`)).toEqual([]);
        expect(clipped.includes(host)).toBe(host.length > 20);
      }
    }
    expect(cells.filter(({ text }) => text === `${gone}, deleted`)).toHaveLength(3);
    const boxes = await page.locator('td .tick input').count();
    expect(boxes).toBe(8);
    await context.close();
  },
);
