import { expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../../../src/api/app.ts';
import { createKey, limitSends } from '../../../src/features/keys/api-keys.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import { openDatabase } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { sendingStackOfFile } from '../messages/send/sending-stack.ts';

const stack = sendingStackOfFile({ HELIOGRAPH_SEND_TIMEOUT_MS: '4000' });

const tools = () => ({ database: stack.database, actor: OPERATOR_COMMAND });

async function limitedKey(limits: { maxMessagesPerDay?: number | null; recipients?: string }) {
  const scopes = ['send', 'graph'];
  const key = await createKey(tools(), stack.wabaId, { name: 'x', expiresAt: null, scopes, ...limits });
  return { id: key.id, authorization: `Bearer ${key.apiKey}` };
}

let phones = 0;
const newPhone = () => `1202556${String(phones++).padStart(4, '0')}`;
const textTo = (to: string, more: object = {}) => ({ to, type: 'text', text: { body: 'Hello' }, ...more });

const sendWith = (authorization: string, body: object, headers: object = {}) =>
  stack.send(body, { authorization, ...headers });

async function facadeSend(authorization: string, body: object) {
  const url = `/graph/v26.0/${stack.number}/messages`;
  const payload = { messaging_product: 'whatsapp', ...body };
  const answer = await stack.app.inject({ method: 'POST', url, headers: { authorization }, payload });
  return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
}

async function receiveFrom(phone: string, more: object = {}): Promise<void> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '12025550100', phone_number_id: stack.number },
    contacts: [{ profile: { name: 'Asha Tester' }, wa_id: phone }],
    messages: [
      { from: phone, id: `wamid.OPEN${phone}`, timestamp, type: 'text', text: { body: 'Hi' }, ...more },
    ],
  };
  const entry = [{ id: stack.wabaId, changes: [{ field: 'messages', value }] }];
  await takeIn(stack.database, Buffer.from(JSON.stringify({ entry })));
}

/** What is stored of the WABA. */
async function stored() {
  const count = async (table: string) =>
    (await query(stack.database, `select 1 from ${table} where waba_id = :wabaId`, { wabaId: stack.wabaId }))
      .length;
  return {
    messages: await count('outbound_messages'),
    conversations: await count('conversations'),
    keys: await count('idempotency_keys'),
  };
}

test('a key sends as many messages a day as it may; the next is refused until midnight UTC, and stores nothing', async () => {
  const { id, authorization } = await limitedKey({ maxMessagesPerDay: 2 });
  expect((await sendWith(authorization, textTo(newPhone()))).status).toBe(200);
  expect((await facadeSend(authorization, textTo(newPhone()))).status).toBe(200);
  const before = await stored();
  const refused = await sendWith(authorization, textTo(newPhone()), { 'idempotency-key': 'beyond' });
  expect([refused.status, refused.body.error.code]).toEqual([429, 'message_limit_reached']);
  const untilMidnight = (86_400_000 - (Date.now() % 86_400_000)) / 1_000;
  expect(Math.abs(Number(refused.headers['retry-after']) - untilMidnight)).toBeLessThan(60);
  const byFacade = await facadeSend(authorization, textTo(newPhone()));
  expect([byFacade.status, byFacade.body.error.code]).toEqual([429, 4]);
  expect(byFacade.headers['retry-after']).toEqual(expect.any(String));
  expect(await stored()).toEqual(before);
  // Other keys of the WABA have a count of their own.
  expect((await stack.send(textTo(newPhone()))).status).toBe(200);
  await execute(stack.database, 'update api_keys set sent_day = sent_day - 1 where id = :id', { id });
  expect((await sendWith(authorization, textTo(newPhone()), { 'idempotency-key': 'beyond' })).status).toBe(
    200,
  );
});

test('a send that is repeated with its Idempotency-Key counts once, and is answered beyond the limit too', async () => {
  const { authorization } = await limitedKey({ maxMessagesPerDay: 2 });
  const phone = newPhone();
  const send = () => sendWith(authorization, textTo(phone), { 'idempotency-key': 'once' });
  const first = await send();
  expect((await send()).text).toBe(first.text);
  expect((await sendWith(authorization, textTo(phone))).status).toBe(200);
  expect((await sendWith(authorization, textTo(phone))).status).toBe(429);
  const again = await send();
  expect([again.status, again.text]).toEqual([first.status, first.text]);
  const failed = await sendWith(authorization, { type: 'text' });
  expect(failed.status).toBe(400);
});

test('processes side by side do not send more than the key may', async () => {
  const { config } = stack;
  const database = openDatabase({ ...config.database, poolMax: 5, applicationName: 'second' });
  const objectStore = openObjectStore(config.objectStore);
  const second = buildApp({ config, database, objectStore, logger: silentLogger });
  onTestFinished(async () => {
    await second.close();
    objectStore.close();
    await database.destroy();
  });
  const { id, authorization } = await limitedKey({ maxMessagesPerDay: 5 });
  const url = '/api/external/messages';
  const statuses = await Promise.all(
    Array.from({ length: 16 }, async (_, number) => {
      const payload = { phoneNumberId: stack.number, ...textTo(newPhone()) };
      const app = number % 2 === 0 ? stack.app : second;
      return (await app.inject({ method: 'POST', url, headers: { authorization }, payload })).statusCode;
    }),
  );
  expect(statuses.filter((status) => status === 429)).toHaveLength(11);
  const sent = 'select 1 from outbound_messages where api_key_id = :id';
  expect(await query(stack.database, sent, { id })).toHaveLength(5);
});

test('a key for open conversations sends to whom wrote within 24 hours, and to nobody else', async () => {
  const { authorization } = await limitedKey({ recipients: 'open_conversations', maxMessagesPerDay: 2 });
  const before = await stored();
  const stranger = await sendWith(authorization, textTo(newPhone()), { 'idempotency-key': 'x' });
  expect([stranger.status, stranger.body.error.code]).toEqual([403, 'recipient_not_open']);
  const byFacade = await facadeSend(authorization, textTo(newPhone()));
  expect([byFacade.status, byFacade.body.error.code]).toEqual([403, 10]);
  const group = 'Y2FwaV9ncm91cDoxMjAyNTU1MDEwMDo5OTlE';
  const toGroup = textTo(group, { recipient_type: 'group' });
  expect((await sendWith(authorization, toGroup)).status).toBe(403);
  expect(await stored()).toEqual(before);
  const phone = newPhone();
  await receiveFrom(phone);
  expect((await sendWith(authorization, textTo(phone))).status).toBe(200);
  await receiveFrom(newPhone(), { group_id: group });
  // What was refused did not count.
  expect((await sendWith(authorization, toGroup)).status).toBe(200);
});

test('the window of a key for open conversations closes 24 hours after the customer wrote', async () => {
  const { authorization } = await limitedKey({ recipients: 'open_conversations' });
  const phone = newPhone();
  await receiveFrom(phone);
  expect((await sendWith(authorization, textTo(phone))).status).toBe(200);
  const text = `update messages set sent_at = now() - interval '25 hours', created_at = now() - interval '25 hours'
                 where waba_id = :wabaId and direction = 'inbound'`;
  await execute(stack.database, text, { wabaId: stack.wabaId });
  const late = await sendWith(authorization, textTo(phone));
  expect([late.status, late.body.error.code]).toEqual([403, 'recipient_not_open']);
});

test('an operator changes the limits of a key from the next message on; values out of bounds are refused', async () => {
  const { id, authorization } = await limitedKey({});
  const limit = (given: object) => limitSends(tools(), stack.wabaId, id, given);
  expect(await limit({ maxMessagesPerDay: 1 })).toEqual({ id, maxMessagesPerDay: 1, recipients: 'any' });
  expect((await sendWith(authorization, textTo(newPhone()))).status).toBe(200);
  expect((await sendWith(authorization, textTo(newPhone()))).status).toBe(429);
  await limit({ maxMessagesPerDay: null });
  expect((await sendWith(authorization, textTo(newPhone()))).status).toBe(200);
  await limit({ recipients: 'open_conversations' });
  expect((await sendWith(authorization, textTo(newPhone()))).status).toBe(403);
  for (const maxMessagesPerDay of [0, -1, 1.5, Number.NaN, 1_000_000_001]) {
    await expect(limit({ maxMessagesPerDay })).rejects.toMatchObject({ code: 'invalid_value' });
  }
  await expect(limit({ recipients: 'all' })).rejects.toMatchObject({ param: 'recipients' });
});
