import { beforeEach, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { apiOfFile } from '../../api/api-harness.ts';
import { newOffice, newUser, type Office } from '../portal-browser.ts';

const CUSTOMER = '12025550143';
const OTHER = '12025550144';

const api = apiOfFile();
let store: Office;
let pages: string;

beforeEach(async () => {
  store = await newOffice(api);
  pages = `${store.path}/opt-outs`;
});

const text = (body: string) => body.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
const shown = async () => text((await store.admin.get(pages)).body);

/** The customer says in WhatsApp that they want no marketing. */
async function stopInWhatsApp(phone: string): Promise<void> {
  const said = { wa_id: phone, category: 'marketing_messages', value: 'stop', timestamp: 1_790_000_000 };
  const metadata = { display_phone_number: '12025550100', phone_number_id: store.number };
  const value = { metadata, contacts: [{ wa_id: phone }], user_preferences: [said] };
  const entry = [{ id: store.wabaId, changes: [{ field: 'user_preferences', value }] }];
  await takeIn(api.database, Buffer.from(JSON.stringify({ entry })));
}

/** A member of the team notes it on the page. */
async function note(scope: string): Promise<void> {
  await store.admin.get(`${pages}/new`);
  const filled = { customer: CUSTOMER, scope, phoneNumberId: '', reason: '' };
  expect((await store.admin.post(`${pages}/new`, filled)).statusCode).toBe(303);
}

async function idOf(source: string): Promise<string> {
  const [row] = await query<{ id: string }>(
    api.database,
    'select id from opt_outs where waba_id = :wabaId and source = :source',
    { wabaId: store.wabaId, source },
  );
  return row?.id ?? '';
}

test('an admin notes that a customer wants no messages, and ends it with evidence', async () => {
  const { admin, wabaId } = store;
  expect(await shown()).toContain('No opt-outs');
  const filled = { customer: '+1 202-555-0143', scope: 'all', phoneNumberId: '', reason: 'asked by phone' };
  for (const [wrong, words] of [
    [{ customer: 'Asha' }, 'The customer must be a phone number'],
    [{ phoneNumberId: '999' }, 'no such phone number'],
  ] as const) {
    const { statusCode, body } = await admin.post(`${pages}/new`, { ...filled, ...wrong });
    expect([statusCode, text(body)]).toEqual([422, expect.stringContaining(words)]);
  }
  const noted = await admin.post(`${pages}/new`, filled);
  expect([noted.statusCode, noted.headers.location]).toEqual([303, `${pages}?done=noted`]);
  expect(await shown()).toMatch(new RegExp(`${CUSTOMER} messages all your team .* asked by phone End`));
  const end = `${pages}/${await idOf('portal')}/end`;
  expect((await admin.get(pages)).body).toContain(`href="${end}"`);
  expect(text((await admin.get(end)).body)).toContain(CUSTOMER);
  const ended = await admin.post(end, { evidence: 'signed form 7' });
  expect([ended.statusCode, ended.headers.location]).toEqual([303, `${pages}?done=ended`]);
  expect(await shown()).toContain('No opt-outs');
  const entries = await query(
    api.database,
    `select action, detail ->> 'evidence' as evidence from audit_log
      where waba_id = :wabaId and action like 'opt_out.%' order by id`,
    { wabaId },
  );
  expect(entries).toEqual([
    { action: 'opt_out.noted', evidence: null },
    { action: 'opt_out.ended', evidence: 'signed form 7' },
  ]);
});

test('what a customer said in WhatsApp is shown, and the list is narrowed by who said it; nobody here ends it', async () => {
  const { admin } = store;
  await stopInWhatsApp(OTHER);
  await note('marketing');
  const narrowed = text((await admin.get(`${pages}?source=upstream`)).body);
  expect(narrowed).toContain(`${OTHER} marketing messages ${store.number} the customer, in WhatsApp`);
  expect(narrowed).not.toContain(CUSTOMER);
  const end = `${pages}/${await idOf('upstream')}/end`;
  expect((await admin.get(pages)).body).not.toContain(end);
  expect((await admin.get(end)).statusCode).toBe(404);
  expect((await admin.post(end, { evidence: 'none' })).statusCode).toBe(404);
});

test('an admin sets the words by which customers opt out, and what is refused stands beside its field', async () => {
  const { admin } = store;
  expect((await admin.get(pages)).body).toContain(`href="${pages}/words"`);
  await admin.get(`${pages}/words`);
  const both = await admin.post(`${pages}/words`, { optOutWords: 'STOP', optInWords: 'stop' });
  expect([both.statusCode, text(both.body)]).toEqual([422, expect.stringContaining('cannot mean both')]);
  const saved = await admin.post(`${pages}/words`, { optOutWords: 'STOP\r\n\r\nBaja', optInWords: '' });
  expect([saved.statusCode, saved.headers.location]).toEqual([303, `${pages}?done=words`]);
  expect((await admin.get(`${pages}/words`)).body).toContain('STOP\nBaja');
});

test('a member sees opt-outs and changes none; another tenant sees none', async () => {
  await note('all');
  const id = await idOf('portal');
  const member = await newUser(api, store.tenantId);
  const { body } = await member.browser.get(pages);
  expect(text(body)).toContain(CUSTOMER);
  expect(body).not.toContain(`/opt-outs/${id}/end`);
  expect((await member.browser.post(`${pages}/${id}/end`, { evidence: 'x' })).statusCode).toBe(403);
  const other = await newOffice(api);
  expect(text((await other.admin.get(`${other.path}/opt-outs`)).body)).not.toContain(CUSTOMER);
  const foreign = await other.admin.post(`${other.path}/opt-outs/${id}/end`, { evidence: 'x' });
  expect(foreign.statusCode).toBe(404);
});
