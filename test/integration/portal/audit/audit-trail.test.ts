import { expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { addConversation, addKey, NUMBER, startTestApi, WABA } from '../../api/api-harness.ts';
import { addDelivery } from '../delivery-fixtures.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser, tenantOf } from '../portal-browser.ts';

async function startPortal() {
  const api = await startTestApi();
  const tenantId = await tenantOf(api.database, WABA);
  const operator = await addUser(api, { email: 'ops@example.com', role: 'operator', tenantId: null });
  const member = await addUser(api, { email: 'ann@store.example', role: 'member', tenantId });
  const reads = async () => {
    const { rows } = await api.database.raw(
      `select actor, action, target, waba_id as waba from audit_log where action like '%.read' order by id`,
    );
    return rows;
  };
  return { api, operator, member, reads };
}

test('an operator who reads a conversation or a body is written down once an hour; tenants are not', async () => {
  const { api, operator, member, reads } = await startPortal();
  const id = await addConversation(api.database);
  await addEndpoint(api.database, WABA, 'https://shop.example/hook');
  const [deliveryId] = await addDelivery(api.database, {
    eventId: 'wamid.read',
    state: 'delivered',
    attempts: [],
  });
  const conversation = `/portal/w/${WABA}/conversations/${id}`;
  const delivery = `/portal/w/${WABA}/deliveries/${deliveryId}`;
  for (const path of [conversation, conversation, delivery, `${delivery}/body`, conversation]) {
    expect((await operator.get(path)).statusCode).toBe(200);
    expect((await member.get(path)).statusCode).toBe(200);
  }
  const read = { actor: 'ops@example.com', waba: WABA };
  expect(await reads()).toEqual([
    { ...read, action: 'conversation.read', target: `conversation ${id}` },
    { ...read, action: 'delivery.read', target: `delivery ${deliveryId}` },
  ]);
  await api.database.transaction(async (trx) => {
    await trx.raw('set local session_replication_role = replica');
    await trx.raw(`update audit_log set at = at - interval '1 hour'`);
  });
  await operator.get(conversation);
  expect(await reads()).toHaveLength(3);
});

test('an operator who lists or searches what customers wrote is written down once an hour for each WABA; tenants are not', async () => {
  const { api, operator, member } = await startPortal();
  await addConversation(api.database, { waId: '12025550143' });
  const { id: endpointId } = await addEndpoint(api.database, WABA, 'https://shop.example/hook');
  await addDelivery(api.database, { eventId: 'wamid.read', state: 'delivered', attempts: [] });
  const tenant = `/portal/w/${WABA}`;
  const paths = [
    `${tenant}/conversations`,
    ...[`${tenant}/deliveries`, `${tenant}/deliveries/rows`, `${tenant}/deliveries?id=wamid.read`],
    `${tenant}/endpoints/${endpointId}`,
  ];
  for (const path of [...paths, ...paths]) {
    expect([path, (await operator.get(path)).statusCode]).toEqual([path, 200]);
    expect([path, (await member.get(path)).statusCode]).toEqual([path, 200]);
  }
  for (const browser of [operator, member]) {
    const found = await browser.post(`${tenant}/conversations/search`, { customer: '12025550143' });
    expect((await browser.get(found.headers.location ?? '')).body).toContain('12025550143');
  }
  const noted = async () =>
    await query<{ actor: string; action: string; target: string; waba: string; detail: object }>(
      api.database,
      `select actor, action, target, waba_id as waba, detail from audit_log
        where action like '%.listed' or action like '%.searched' order by id`,
    );
  const read = { actor: 'ops@example.com', target: `WABA ${WABA}`, waba: WABA, detail: {} };
  const all = [
    { ...read, action: 'conversations.listed' },
    { ...read, action: 'deliveries.listed' },
    { ...read, action: 'deliveries.searched' },
    { ...read, action: 'conversations.searched' },
  ];
  expect(await noted()).toEqual(all);
  // The list of all tenants notes whose deliveries it shows.
  await query(api.database, `alter table audit_log disable trigger all`);
  await query(api.database, `update audit_log set at = at - interval '1 hour'`);
  expect((await operator.get('/portal/operator/deliveries')).statusCode).toBe(200);
  expect(await noted()).toEqual([...all, { ...read, action: 'deliveries.listed' }]);
});

test('the audit log is downloaded as JSON lines: by a tenant its own, by an operator all with their hashes', async () => {
  const { operator, member } = await startPortal();
  const page = await member.get(`/portal/w/${WABA}/audit`);
  expect([page.body.includes(`/portal/w/${WABA}/audit/export`), await markupProblems(page.body)]).toEqual([
    true,
    [],
  ]);
  const own = await member.get(`/portal/w/${WABA}/audit/export`);
  expect(own.headers).toMatchObject({
    'content-type': 'application/x-ndjson; charset=utf-8',
    'content-disposition': 'attachment; filename="audit.jsonl"',
  });
  const entries = own.body
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(entries[0]).toMatchObject({ action: 'audit.exported', actor: 'ann@store.example' });
  expect(entries.some(({ actor }) => actor === 'ops@example.com')).toBe(false);
  expect((await member.get('/portal/operator/audit/export')).statusCode).toBeGreaterThanOrEqual(400);
  const all = await operator.get('/portal/operator/audit/export');
  const lines = all.body
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ position }) => position)).toEqual(lines.map((_, at) => at + 1));
  expect(lines.at(-1)).toMatchObject({
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    entry: { actor: 'ops@example.com' },
  });
});

test('a message and an upload tell which key they came by', async () => {
  const { api, member } = await startPortal();
  const { id: keyId, authorization } = await addKey(api.database);
  const sent = await api.app.inject({
    method: 'POST',
    url: '/api/external/messages',
    headers: { authorization },
    payload: { phoneNumberId: NUMBER, to: '+12025550143', type: 'text', text: { body: 'Hello' } },
  });
  expect(sent.statusCode).toBeLessThan(300);
  const { rows } = await api.database.raw(
    `select o.api_key_id as key, m.conversation_id as conversation from outbound_messages o join messages m on m.id = o.message_id`,
  );
  expect(rows).toEqual([{ key: keyId, conversation: expect.any(String) }]);
  const page = await member.get(`/portal/w/${WABA}/conversations/${rows[0].conversation}`);
  expect(page.body).toContain(`sent with API key ${keyId}`);
  const form = [
    '--b',
    'content-disposition: form-data; name="file"; filename="a.png"',
    'content-type: image/png',
    '',
    '',
    '--b--',
    '',
  ];
  form[4] = Buffer.from('89504e470d0a1a0a', 'hex').toString('latin1');
  const upload = await api.app.inject({
    method: 'POST',
    url: '/api/external/media',
    headers: { authorization, 'content-type': 'multipart/form-data; boundary=b' },
    payload: Buffer.from(form.join('\r\n'), 'latin1'),
  });
  expect(upload.statusCode, upload.body).toBe(201);
  const uploads = await api.database.raw('select api_key_id as key from media_uploads');
  expect(uploads.rows).toEqual([{ key: keyId }]);
});
