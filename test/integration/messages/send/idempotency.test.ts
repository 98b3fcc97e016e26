import { describe, expect, test } from 'vitest';
import {
  forgetOldIdempotencyKeys,
  saveIdempotentResponse,
} from '../../../../src/features/messages/send/idempotency-keys.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { addKey, OTHER_WABA } from '../../api/api-harness.ts';
import { sendingStackOfFile, textTo } from './sending-stack.ts';

const stack = sendingStackOfFile();

const messages = async () =>
  (await query(stack.database, 'select 1 from messages where waba_id = :wabaId', { wabaId: stack.wabaId }))
    .length;

describe('Idempotency-Key', () => {
  test('50 equal requests at once make one message; the others wait or get its answer', async () => {
    await stack.addFault({ match: 'send', kind: 'slow', delayMs: 700 });
    const body = textTo();
    const key = { 'idempotency-key': 'fifty' };
    const replies = await Promise.all(Array.from({ length: 50 }, () => stack.send(body, key)));
    const statuses = replies.map(({ status }) => status);
    expect(statuses.filter((status) => status !== 409)).toEqual([200]);
    const refused = replies.find(({ status }) => status === 409);
    expect(refused?.body.error.code).toBe('idempotency_key_in_flight');
    expect(refused?.headers['retry-after']).toBe('1');
    const first = replies.find(({ status }) => status === 200);
    expect(first?.headers['idempotent-replayed']).toBeUndefined();
    const again = await stack.send(body, key);
    expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([
      200,
      first?.text,
      'true',
    ]);
    expect(await messages()).toBe(1);
    expect(await stack.sendRequests()).toHaveLength(1);
  });

  test('repeats a refusal too, byte for byte, with its request id', async () => {
    await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131026, times: 1 });
    const body = textTo();
    const first = await stack.send(body, { 'idempotency-key': 'refused' });
    const again = await stack.send(body, { 'idempotency-key': 'refused' });
    expect([first.status, again.status]).toEqual([424, 424]);
    expect(again.text).toBe(first.text);
    expect(await stack.sendRequests()).toHaveLength(1);
  });

  test('with another body is refused; what was not valid took no key', async () => {
    const body = textTo();
    const key = { 'idempotency-key': 'other body' };
    expect((await stack.send({ ...body, text: {} }, key)).status).toBe(400);
    expect((await stack.send({ ...body, phoneNumberId: '1' }, key)).status).toBe(422);
    expect((await stack.send(body, key)).status).toBe(200);
    const other = await stack.send({ ...body, text: { body: 'other' } }, key);
    expect([other.status, other.body.error.code]).toEqual([422, 'idempotency_key_reused']);
    expect(await stack.sendRequests()).toHaveLength(1);
  });

  test('of one WABA means nothing to another, nor to another key of the same one', async () => {
    const body = { phoneNumberId: stack.number, ...textTo() };
    const key = { 'idempotency-key': 'shared' };
    const first = await stack.send(body, key);
    const sibling = await addKey(stack.database, stack.wabaId);
    const other = await addKey(stack.database, OTHER_WABA);
    const post = (authorization: string) =>
      stack.app.inject({
        method: 'POST',
        url: '/api/external/messages',
        headers: { authorization, ...key },
        payload: body,
      });
    expect((await post(sibling.authorization)).body).toBe(first.text);
    expect((await post(other.authorization)).json().error.code).toBe('unknown_phone_number');
  });

  test.each(['', ' ', 'a\tb', 'é', 'x'.repeat(256), ' a'])('%j is no key', async (value) => {
    const { status, body } = await stack.send(textTo(), { 'idempotency-key': value });
    expect([status, body.error.param]).toEqual([400, 'Idempotency-Key']);
  });

  test('of 255 characters is one', async () => {
    expect((await stack.send(textTo(), { 'idempotency-key': 'x'.repeat(255) })).status).toBe(200);
  });

  test('of a process that died before it answered: the outcome is told once it is known', async () => {
    const body = textTo();
    const key = { 'idempotency-key': 'died' };
    const first = await stack.send(body, key);
    const forget = `update idempotency_keys set response_status = null, response_body = null`;
    await query(stack.database, `${forget}, held_until = now() + interval '1 hour' where key = 'died'`);
    const again = await stack.send(body, key);
    expect([again.status, again.body, again.headers['idempotent-replayed']]).toEqual([
      200,
      first.body,
      'true',
    ]);
    expect(await stack.sendRequests()).toHaveLength(1);
  });

  test('of which a repetition was answered first: the first request gets that response too', async () => {
    await stack.send(textTo(), { 'idempotency-key': 'overtaken' });
    const [row] = await query<{ operation: string; body: string }>(
      stack.database,
      `select operation, response_body as body from idempotency_keys where key = 'overtaken'`,
    );
    const late = { status: 202, body: '{"late":true}' };
    const kept = await saveIdempotentResponse(
      stack.database,
      stack.wabaId,
      { operation: row?.operation ?? '', key: 'overtaken', fingerprint: Buffer.alloc(0) },
      late,
    );
    expect(kept).toEqual({ status: 200, body: row?.body });
  });

  test('is kept for more than a day, and not for ever', async () => {
    await stack.send(textTo(), { 'idempotency-key': 'day' });
    await stack.send(textTo(), { 'idempotency-key': 'days' });
    const age = `update idempotency_keys set created_at = now() - interval '25 hours' where key = 'day'`;
    await query(stack.database, age);
    await query(stack.database, `${age.replace('25', '49').replace(`'day'`, `'days'`)}`);
    await forgetOldIdempotencyKeys(stack.database, 1_000);
    const left = await query(stack.database, `select key from idempotency_keys where key in ('day', 'days')`);
    expect(left).toEqual([{ key: 'day' }]);
  });

  test('and many different ones at once all go out, once each, in one conversation', async () => {
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        stack.send(textTo('+12025559999', `n ${n}`), { 'idempotency-key': `many-${n}` }),
      ),
    );
    // On a busy machine the last of them may be told to look later.
    expect(replies.filter(({ status }) => status !== 200 && status !== 202)).toEqual([]);
    expect(new Set(replies.map(({ body }) => body.conversationId)).size).toBe(1);
    expect(new Set(replies.map(({ body }) => body.serviceMessageId)).size).toBe(30);
    await eventually('all are sent', async () => (await stack.sent()).length >= 30);
    expect(await stack.sent()).toHaveLength(30);
    expect((await stack.sent()).every(({ phoneNumberId }) => phoneNumberId === stack.number)).toBe(true);
  });
});
