import { readFileSync } from 'node:fs';
import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchChrome } from '../support/browser.ts';
import { eventually } from '../support/webhook-receiver.ts';
import { noMoreWebhooks, received, webhook } from './support/received.ts';
import { admin, description } from './support/stack.ts';
import { fixture, postUpstream, textBody } from './support/upstream.ts';

const GUIDE = new URL('../../docs/operators/operations.md', import.meta.url);
const WABA = '900000000000101';

let browser: Browser;

beforeAll(async () => {
  browser = await launchChrome();
});

afterAll(() => browser?.close());

const newPage = () =>
  browser.newPage({
    viewport: { width: 1600, height: 900 },
    ignoreHTTPSErrors: true,
    reducedMotion: 'reduce',
  });

/** The addresses of the guide by what they show, in the namespace of `npm start` and for this endpoint. */
function addressesOfGuide(endpointId: string): Map<string, string> {
  const rows = [
    ...readFileSync(GUIDE, 'utf8').matchAll(/^\| (.+) \| `\/namespaces\/heliograph(\/\S+)` \|$/gm),
  ];
  return new Map(
    rows.map(([, what = '', path = '']) => [
      what,
      `/namespaces/default${path.replace('%2F3', `%2F${endpointId}`).replace('%223%22', `%22${endpointId}%22`)}`,
    ]),
  );
}

/** An endpoint whose server answers 503 for now, and one event that waits an hour for its next attempt. */
async function failingEndpoint() {
  const name = 'temporal-ui';
  const { receiverUrl } = description();
  const control = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' };
    const sent = { method: 'POST', headers, body: JSON.stringify(body) };
    expect((await fetch(`${receiverUrl}/control/${path}`, sent)).status).toBe(200);
  };
  await control('behaviour', { name, mode: 'status', status: 503, retryAfter: 3_600 });
  const url = `${receiverUrl}/webhook/${name}`;
  const added = await admin('endpoint', 'add', '--waba', WABA, '--url', url);
  await control('secrets', { secrets: [added.secret] });
  expect(await postUpstream(textBody('wamid.temporal-ui', 'hello'))).toBe(200);
  const attempts = async () => (await received()).filter((one) => one.name === name).length;
  return { id: String(added.id), attempts, comeBack: () => control('behaviour', { name, mode: 'ok' }) };
}

describe('the Temporal UI', () => {
  test('shows an operator the deliveries of an event and its media, found by eventId', async () => {
    await noMoreWebhooks();
    expect(await postUpstream(fixture('in_document.json'))).toBe(200);
    const ready = await webhook(
      'media.ready',
      (one) =>
        one.headers['x-service-event-type'] === 'media.ready' && one.body.includes('"mediaType":"document"'),
    );
    const { eventId, data } = JSON.parse(ready.body);
    const page = await newPage();
    const { url } = await admin('events', 'search-attribute', eventId);
    await page.goto(String(url));
    await page.getByText(`media/${data.serviceMessageId}`, { exact: true }).waitFor();
    await page.getByText('/dlv_').first().waitFor();
    await page.getByText(`media/${data.serviceMessageId}`, { exact: true }).click();
    await page.getByText('fetch from upstream, check, store, announce').first().waitFor();
    const shown = await page.locator('main').innerText();
    expect(shown).toContain('storeInboundMedia');
    expect(shown).toMatch(/completed/i);
  });

  test("leads from the guide's addresses to an endpoint in trouble, says what waits, and retries it now", async () => {
    const { id, attempts, comeBack } = await failingEndpoint();
    const addresses = addressesOfGuide(id);
    const page = await newPage();
    const open = (about: string) =>
      page.goto(`${description().temporalUiUrl}${addresses.get(about) ?? `/no-address-of-${about}`}`);
    const row = page.getByRole('link', { name: `endpoint/${id}`, exact: true });
    const failed = page.getByRole('link', { name: new RegExp(`^delivery/${id}/dlv_`) });
    await eventually('the list has its run', async () => {
      await open('endpoints in trouble');
      return await row.waitFor({ timeout: 10_000 }).then(
        () => true,
        () => false,
      );
    });
    await open('open workflows of endpoint 3');
    await Promise.all([row.waitFor(), failed.waitFor()]);
    await page.getByRole('button', { name: 'Save as New' }).click();
    await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('endpoint at work');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.goto(`${description().temporalUiUrl}/namespaces/default/workflows`);
    // Newer versions of the UI keep the views in a menu.
    const [menu, view] = [
      page.getByRole('button', { name: /^Saved Views/ }),
      page.getByText('endpoint at work'),
    ];
    await menu.or(view).first().waitFor();
    if (!(await view.isVisible())) await menu.click();
    await view.click();
    await Promise.all([row.waitFor(), failed.waitFor()]);

    await open('the run of endpoint 3');
    await page.getByRole('tab', { name: 'User Metadata' }).click();
    await page.getByText('Current Details').waitFor();
    // The UI shows Markdown in frames.
    const details = page.frameLocator('iframe').last();
    await details.getByText('Pending: 1').waitFor();
    const shown = await details.locator('body').innerText();
    for (const part of ['failing since', 'the endpoint returned 503', 'attempt 2 of dlv_'])
      expect(shown).toContain(part);
    const bottomOf = async (shown: Locator) => {
      const { y, height } = (await shown.boundingBox()) ?? { y: Number.NaN, height: Number.NaN };
      return y + height;
    };
    const lastLine = await bottomOf(details.getByText('attempt 2 of dlv_'));
    expect(lastLine).toBeLessThanOrEqual(await bottomOf(page.locator('iframe').last()));
    const portal = page.context().waitForEvent('page');
    await details.getByRole('link', { name: `Endpoint ${id}`, exact: true }).click();
    expect(decodeURIComponent((await portal).url())).toContain(`/portal/w/${WABA}/endpoints/${id}`);
    // A page in the background draws so seldom that each click takes seconds.
    await (await portal).close();

    await comeBack();
    expect(await attempts()).toBe(1);
    await page.getByRole('button', { name: 'More Actions' }).click();
    await page.getByRole('menuitem', { name: 'Send an Update' }).click();
    const dialog = page.getByRole('dialog', { name: 'Send an Update' });
    const update = async (name: string) => {
      await dialog.locator('[aria-haspopup]').click();
      await dialog.getByRole('option', { name: new RegExp(`^${name} `) }).click();
      await dialog.getByRole('button', { name: 'Submit' }).click();
    };
    await update('enable');
    await dialog.getByText('choose "send" or "drop" for what waits').first().waitFor();
    await update('retryNow');
    await page.getByText('Update successful').first().waitFor();
    await eventually('it is attempted', attempts, { is: 2 });
  });
});
