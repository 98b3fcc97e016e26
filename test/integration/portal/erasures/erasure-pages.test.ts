import { beforeEach, expect, test } from 'vitest';
import { verifyReport } from '../../../../src/ops/erasures/erasure-report.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { apiOfFile, testConfig } from '../../api/api-harness.ts';
import { bodyOf, contactOf, eraseAll, messageOf, person, toolsFor } from '../../erasures/erasure-world.ts';
import { newOffice, newUser, type Office, type PortalBrowser, type PortalUser } from '../portal-browser.ts';

const OPERATOR = '/portal/operator/erasures';
const ASHA = person('Asha', '5511987650143');

const api = apiOfFile();
let store: Office;
let member: PortalUser;
let operator: PortalBrowser;
let erasures: string;

beforeEach(async () => {
  store = await newOffice(api);
  erasures = `${store.path}/erasures`;
  member = await newUser(api, store.tenantId);
  ({ browser: operator } = await newUser(api, null));
});

const text = (body: string) => body.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

test('an admin exports a customer, then erases them from their conversation, and gets the signed report', async () => {
  const { admin, path: pages, wabaId, number } = store;
  const talking = { contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1), messageOf(ASHA, 2)] };
  await takeIn(api.database, bodyOf([talking], wabaId, number));
  const [talk] = await query<{ id: string }>(
    api.database,
    'select id from conversations where waba_id = :wabaId',
    { wabaId },
  );
  const conversation = await admin.get(`${pages}/conversations/${talk?.id}`);
  expect(conversation.body).toContain(`${erasures}/new?conversationId=${talk?.id}`);
  const form = await admin.get(`${erasures}/new?conversationId=${talk?.id}`);
  expect(form.body).toContain(`name="conversationId" type="text" value="${talk?.id}"`);
  const archive = await admin.post(`${erasures}/export`, { exported: '+55 11 98765-0143' });
  expect([archive.statusCode, archive.headers['content-type']]).toEqual([200, 'application/zip']);
  expect(archive.rawPayload.includes('messages.ndjson')).toBe(true);
  for (const wrong of [
    { customer: ASHA.waId, confirm: 'yes' },
    { customer: ASHA.waId, conversationId: talk?.id ?? '', confirm: 'erase' },
    { confirm: 'erase' },
    { customer: '4915550000000', confirm: 'erase' },
    { customer: `${ASHA.waId}.0`, confirm: 'erase' },
    { customer: `+44 (0)20 7946 0018`, confirm: 'erase' },
  ]) {
    const answer = await admin.post(erasures, { customer: '', conversationId: '', ...wrong });
    expect([wrong, answer.statusCode]).toEqual([wrong, 422]);
  }
  expect(await query(api.database, 'select 1 from erasures')).toEqual([]);
  const asked = await admin.post(erasures, { customer: ASHA.waId, conversationId: '', confirm: 'erase' });
  expect(asked.statusCode).toBe(303);
  const path = String(asked.headers.location);
  const id = path.split('/').at(-1) ?? '';
  expect(text((await admin.get(path)).body)).toMatch(/Running.*nothing yet.*user \d+/);
  expect((await admin.get(`${path}/report`)).statusCode).toBe(404);
  const tools = toolsFor(api.database, testConfig());
  await tools.objectStore.ensureBucket();
  await eraseAll(tools, id);
  const done = await member.browser.get(path);
  expect(text(done.body)).toMatch(/Done.*messages: 2, ordering keys: 2, raw bodies deleted: 1/);
  expect(done.body).not.toContain(ASHA.waId);
  const report = await member.browser.get(`${path}/report`);
  expect(report.headers['content-disposition']).toBe(`attachment; filename="erasure-${id}.json"`);
  expect(verifyReport(report.json(), tools.encryptionKeys)).toBe('valid');
  expect((await admin.get(`${pages}/conversations/${talk?.id}`)).statusCode).toBe(404);
});

test('a member sees what was erased and can neither erase nor export', async () => {
  expect((await member.browser.get(erasures)).body).not.toContain(`${erasures}/new`);
  for (const path of [erasures, `${erasures}/export`]) {
    const answer = await member.browser.post(path, {
      customer: '1',
      exported: '1',
      conversationId: '',
      confirm: 'erase',
    });
    expect([path, answer.statusCode]).toEqual([path, 403]);
  }
});

test('an operator erases a user by kind and id, typed again', async () => {
  const { id } = member;
  await operator.get(OPERATOR);
  const wrong = await operator.post(OPERATOR, { kind: 'user', id, confirm: `tenant ${id}` });
  expect(wrong.statusCode).toBe(422);
  const asked = await operator.post(OPERATOR, { kind: 'user', id, confirm: `user ${id}` });
  expect(asked.statusCode).toBe(303);
  const tools = toolsFor(api.database, testConfig());
  await eraseAll(tools, String(asked.headers.location).split('/').at(-1) ?? '');
  expect(text((await operator.get(OPERATOR)).body)).toMatch(new RegExp(`user ${id} ✓ Done \\d`));
  expect((await member.browser.get(erasures)).statusCode).toBe(303);
  expect((await store.admin.get(OPERATOR)).statusCode).toBe(403);
});
