import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { noMoreWebhooks, webhook } from './support/received.ts';
import { admin } from './support/stack.ts';
import { fixture, postUpstream } from './support/upstream.ts';

/** Where Debian and others put it; `npm test` installs it where it is missing. */
const CHROMIUM = [
  process.env.HELIOGRAPH_CHROMIUM ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** Chromium tries to reach its maker otherwise. */
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

describe('the Temporal UI', () => {
  test('shows an operator the deliveries of an event and its media, found by eventId', async () => {
    const executablePath = CHROMIUM.find((path) => path !== '' && existsSync(path));
    if (executablePath === undefined) throw new Error('no Chromium: install it or set HELIOGRAPH_CHROMIUM');
    await noMoreWebhooks();
    expect(await postUpstream(fixture('in_document.json'))).toBe(200);
    const ready = await webhook(
      'media.ready',
      (one) =>
        one.headers['x-service-event-type'] === 'media.ready' && one.body.includes('"mediaType":"document"'),
    );
    const { eventId, data } = JSON.parse(ready.body);
    const browser = await chromium.launch({ executablePath, args: QUIET });
    try {
      const page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
      const { url } = await admin('events', 'search-attribute', eventId);
      await page.goto(String(url));
      await page.getByText(`media/${data.serviceMessageId}`, { exact: true }).waitFor({ timeout: 30_000 });
      await page.getByText('/dlv_').first().waitFor({ timeout: 30_000 });
      await page.getByText(`media/${data.serviceMessageId}`, { exact: true }).click();
      await page
        .getByText('fetch from upstream, check, store, announce')
        .first()
        .waitFor({ timeout: 30_000 });
      const shown = await page.locator('main').innerText();
      expect(shown).toContain('storeInboundMedia');
      expect(shown).toContain('Completed');
    } finally {
      await browser.close();
    }
  });
});
