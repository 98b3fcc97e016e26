import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ingestHistory } from '../../../../src/ingest/fields/history.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { launchChrome } from '../../../support/browser.ts';
import { takeIn } from '../../../support/take-in.ts';
import { NUMBER, startTestApi, WABA } from '../../api/api-harness.ts';
import { listen, picture, problemsInAllLooks, signedInWindow } from '../chrome.ts';
import { addUser, tenantOf } from '../portal-browser.ts';

const ADMIN = 'admin@store.example';
const [BUSINESS, CUSTOMER] = ['12025550100', '12025550143'];

let chrome: Browser;

beforeAll(async () => {
  chrome = await launchChrome();
});
afterAll(() => chrome.close());

/** What upstream reports in a field of the number. */
function body(field: string, value: object): Buffer {
  const metadata = { display_phone_number: BUSINESS, phone_number_id: NUMBER };
  const change = { field, value: { metadata, ...value } };
  return Buffer.from(JSON.stringify({ entry: [{ id: WABA, changes: [change] }] }));
}

function message(id: string, secondsAgo: number, members: object = {}): object {
  const timestamp = String(Math.floor(Date.now() / 1_000) - secondsAgo);
  return { from: CUSTOMER, id, timestamp, type: 'text', text: { body: `Text of ${id}` }, ...members };
}

test('a conversation shows what was written in the WhatsApp Business app, its history, what another responder has, and the last call', async () => {
  const { app, database } = await startTestApi();
  await addUser({ app, database }, { email: ADMIN, role: 'admin', tenantId: await tenantOf(database, WABA) });
  const echo = (id: string, secondsAgo: number, members: object = {}) =>
    message(id, secondsAgo, { from: BUSINESS, to: CUSTOMER, ...members });
  const threads = [{ id: CUSTOMER, messages: [message('wamid.h1', 90_000), echo('wamid.h2', 89_000)] }];
  const revoke = { type: 'revoke', revoke: { original_message_id: 'wamid.e2' } };
  await takeIn(database, body('history', { history: [{ metadata: { phase: 0, chunk_order: 1 }, threads }] }));
  await ingestHistory(database, new AbortController().signal, 0);
  await takeIn(
    database,
    body('smb_message_echoes', { message_echoes: [echo('wamid.e1', 600), echo('wamid.e2', 500)] }),
    body('smb_message_echoes', { message_echoes: [echo('wamid.e3', 400, revoke)] }),
    body('standby', { standby: { messages: [message('wamid.s1', 350)] } }),
    body('messaging_handovers', {
      sender: { phone_number: CUSTOMER },
      recipient: { phone_number_id: NUMBER },
      type: 'control_taken',
      timestamp: String(Math.floor(Date.now() / 1_000) - 340),
      control_taken: { new_owner_role: 'ai_agent' },
    }),
    body('calls', { calls: [{ ...message('wacid.1', 300), event: 'connect', direction: 'USER_INITIATED' }] }),
  );
  const [talk] = await query<{ id: string }>(database, 'select id from conversations');
  const origin = await listen(app);
  const page = await (await signedInWindow(chrome, origin, ADMIN)).newPage();
  await page.goto(`${origin}/portal/w/${WABA}/conversations/${talk?.id}`);
  const text = await page.locator('main').innerText();
  for (const wanted of [
    'written in the WhatsApp Business app',
    'from the history of the WhatsApp Business app',
    'Deleted by the business',
    'Last call of the customer',
    'a copy: another responder has it',
    'Who has it',
  ])
    expect(text).toContain(wanted);
  expect(text).toMatch(/Another responder \(ai agent\)\s+since/);
  // The call was 300 seconds ago, in whichever minute that was.
  expect(text).toMatch(
    /until \d{1,2} [A-Z][a-z]{2,3}, \d\d:\d\d UTC \(23 h\): free-form messages can be sent/,
  );
  expect(await problemsInAllLooks(page, 'conversation')).toEqual([]);
  await picture(page, 'conversation');
  const edges = await page.evaluate<number[]>(
    `[document.querySelector('.thread'), ...document.querySelectorAll('.message.business article')]
       .map((one) => Math.round(one.getBoundingClientRect().right))`,
  );
  expect(new Set(edges).size).toBe(1);
  await page.goto(`${origin}/portal/w/${WABA}/conversations`);
  const [row = ''] = await page.locator('tbody tr').allInnerTexts();
  const [number] = await query<{ shown: string }>(
    database,
    'select display_phone_number as shown from phone_numbers where phone_number_id = :number',
    { number: NUMBER },
  );
  expect(row).toContain(number?.shown);
  expect(row).toMatch(/(You: )?Text of wamid\.(e[12]|s1)|revoke/);
  expect(row).toMatch(/Open\s+until .* UTC \(23 h\)/);
  expect(await problemsInAllLooks(page, 'conversations')).toEqual([]);
});
