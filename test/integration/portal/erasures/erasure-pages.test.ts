import { beforeAll, expect, test } from 'vitest';
import { verifyReport } from '../../../../src/erasures/erasure-report.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { apiOfFile, testConfig, WABA } from '../../api/api-harness.ts';
import { bodyOf, contactOf, eraseAll, messageOf, person, toolsFor } from '../../erasures/erasure-world.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

const ERASURES = `/portal/w/${WABA}/erasures`;
const OPERATOR = '/portal/operator/erasures';
const ASHA = person('Asha', '5511987650143');

const api = apiOfFile();
let admin: PortalBrowser;
let member: PortalBrowser;
let operator: PortalBrowser;

beforeAll(async () => {
  const tenantId = await tenantOf(api.database, WABA);
  const user = (email: string, role: string) =>
    addUser(api, { email, role, tenantId: role === 'operator' ? null : tenantId });
  admin = await user('ann@shop.example', 'admin');
  member = await user('mo@shop.example', 'member');
  operator = await user('ops@heliograph.example', 'operator');
  await takeIn(
    api.database,
    bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1), messageOf(ASHA, 2)] }]),
  );
});

const text = (body: string) => body.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

test('an admin exports a customer, then erases them from their conversation, and gets the signed report', async () => {
  const [talk] = await query<{ id: string }>(api.database, 'select id from conversations');
  const conversation = await admin.get(`/portal/w/${WABA}/conversations/${talk?.id}`);
  expect(conversation.body).toContain(`${ERASURES}/new?conversationId=${talk?.id}`);
  const form = await admin.get(`${ERASURES}/new?conversationId=${talk?.id}`);
  expect(form.body).toContain(`name="conversationId" type="text" value="${talk?.id}"`);
  const archive = await admin.post(`${ERASURES}/export`, { exported: '+55 11 98765-0143' });
  expect([archive.statusCode, archive.headers['content-type']]).toEqual([200, 'application/zip']);
  expect(archive.rawPayload.includes('messages.ndjson')).toBe(true);
  for (const wrong of [
    { customer: ASHA.waId, confirm: 'yes' },
    { customer: ASHA.waId, conversationId: talk?.id ?? '', confirm: 'erase' },
    { confirm: 'erase' },
    { customer: '4915550000000', confirm: 'erase' },
  ]) {
    const answer = await admin.post(ERASURES, { customer: '', conversationId: '', ...wrong });
    expect([wrong, answer.statusCode]).toEqual([wrong, 422]);
  }
  expect(await query(api.database, 'select 1 from erasures')).toEqual([]);
  const asked = await admin.post(ERASURES, { customer: ASHA.waId, conversationId: '', confirm: 'erase' });
  expect(asked.statusCode).toBe(303);
  const path = String(asked.headers.location);
  const id = path.split('/').at(-1) ?? '';
  expect(text((await admin.get(path)).body)).toMatch(/Running.*nothing yet.*user \d+/);
  expect((await admin.get(`${path}/report`)).statusCode).toBe(404);
  const tools = toolsFor(api.database, testConfig());
  await tools.objectStore.ensureBucket();
  await eraseAll(tools, id);
  const done = await member.get(path);
  expect(text(done.body)).toMatch(/Done.*messages: 2, ordering keys: 2, raw bodies deleted: 1/);
  expect(done.body).not.toContain(ASHA.waId);
  const report = await member.get(`${path}/report`);
  expect(report.headers['content-disposition']).toBe(`attachment; filename="erasure-${id}.json"`);
  expect(verifyReport(report.json(), tools.encryptionKeys)).toBe('valid');
  expect((await admin.get(`/portal/w/${WABA}/conversations/${talk?.id}`)).statusCode).toBe(404);
});

test('a member sees what was erased and can neither erase nor export', async () => {
  expect((await member.get(ERASURES)).body).not.toContain(`${ERASURES}/new`);
  for (const path of [ERASURES, `${ERASURES}/export`]) {
    const answer = await member.post(path, {
      customer: '1',
      exported: '1',
      conversationId: '',
      confirm: 'erase',
    });
    expect([path, answer.statusCode]).toEqual([path, 403]);
  }
});

test('an operator erases a user by kind and id, typed again', async () => {
  const [mo] = await query<{ id: string }>(
    api.database,
    `select id from users where email = 'mo@shop.example'`,
  );
  const id = mo?.id ?? '';
  await operator.get(OPERATOR);
  const wrong = await operator.post(OPERATOR, { kind: 'user', id, confirm: `tenant ${id}` });
  expect(wrong.statusCode).toBe(422);
  const asked = await operator.post(OPERATOR, { kind: 'user', id, confirm: `user ${id}` });
  expect(asked.statusCode).toBe(303);
  const tools = toolsFor(api.database, testConfig());
  await eraseAll(tools, String(asked.headers.location).split('/').at(-1) ?? '');
  expect(text((await operator.get(OPERATOR)).body)).toMatch(new RegExp(`user ${id} ✓ Done \\d`));
  expect((await member.get(ERASURES)).statusCode).toBe(303);
  expect((await admin.get(OPERATOR)).statusCode).toBe(403);
});
