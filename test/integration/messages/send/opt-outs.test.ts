import { describe, expect, test } from 'vitest';
import { followPhoneAlias } from '../../../../src/features/messages/send/recipient-conversations.ts';
import { queryOnly } from '../../../../src/platform/postgres/sql.ts';
import { orders } from '../../../support/orders.ts';
import { takeIn } from '../../../support/take-in.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { marketing, optOutsOf, REFUSED, type Said, someone, template, utility } from './opt-out-calls.ts';
import { sendingStackOfFile } from './sending-stack.ts';

const stack = sendingStackOfFile();

const { bodyOf, preference, stop, resume, call, outcome } = optOutsOf(stack);

async function conversations(query: string) {
  const { authorization } = stack;
  const answer = await stack.app.inject({
    url: `/api/external/conversations${query}`,
    headers: { authorization },
  });
  return answer.json();
}

describe('a customer who wants no marketing', () => {
  test('gets no marketing template, and everything else', async () => {
    const { phone } = someone();
    await takeIn(stack.database, stop(phone));
    const key = { 'idempotency-key': `offer-${phone}` };
    const { status, body } = await stack.send(marketing(phone), key);
    expect([status, body.error]).toEqual([
      422,
      expect.objectContaining({
        code: 'recipient_opted_out',
        optOut: { scope: 'marketing', source: 'upstream', since: '2026-09-21T14:13:20.000Z' },
      }),
    ]);
    expect(await stack.sendRequests()).toEqual([]);
    const { messages } = await queryOnly<{ messages: string }>(
      stack.database,
      'select count(*) as messages from messages where waba_id = :wabaId',
      { wabaId: stack.wabaId },
    );
    expect(messages).toBe('0');
    expect(await outcome(utility(phone))).toBe(200);
    expect(await outcome({ to: phone, type: 'text', text: { body: 'Hello' } })).toBe(200);
    // The key was not used up, and a template that upstream does not list is for upstream to judge.
    expect(await outcome(template(phone, 'unheard_of'), key)).toEqual([424, 'upstream_refused']);
    await takeIn(stack.database, resume(phone, 5));
    expect(await outcome(marketing(phone))).toBe(200);
  });

  test('is known by user id, by phone and by other digits of the phone', async () => {
    const { phone, userId } = someone();
    await takeIn(stack.database, preference({ value: 'stop', at: 0, wa_id: phone, user_id: userId }));
    const { to: _, ...byUserId } = { ...marketing(''), recipient: userId };
    expect(await outcome(byUserId)).toEqual(REFUSED);
    expect(await outcome(marketing(`+${phone}`))).toEqual(REFUSED);
    const spelled = `55${phone}`;
    await stack.database.transaction((trx) => followPhoneAlias(trx, stack.wabaId, spelled, phone));
    expect(await outcome(marketing(spelled))).toEqual(REFUSED);
  });

  test('of one number may get marketing of another', async () => {
    const { phone } = someone();
    await takeIn(stack.database, stop(phone));
    expect(await outcome({ ...marketing(phone), phoneNumberId: stack.secondNumber })).toBe(200);
    expect(await outcome(marketing(phone))).toEqual(REFUSED);
  });

  test.each([
    ['stop then resume', ['stop', 0], ['resume', 9], 200],
    ['resume, and the stop before it', ['resume', 9], ['stop', 0], 200],
    ['resume then stop', ['resume', 0], ['stop', 9], REFUSED],
    ['stop, and the resume before it', ['stop', 9], ['resume', 0], REFUSED],
    ['both in one second, as they came', ['stop', 5], ['resume', 5], 200],
  ] as const)('%s: the latest by its time holds', async (_name, first, second, expected) => {
    for (const together of [false, true]) {
      const { phone } = someone();
      const [one, two] = [first, second].map(([value, at]) => preference({ value, at, wa_id: phone }));
      if (one === undefined || two === undefined) throw new Error('two are needed');
      if (together) await takeIn(stack.database, one, two);
      else for (const body of [one, two]) await takeIn(stack.database, body);
      expect(await outcome(marketing(phone))).toEqual(expected);
    }
  });

  test.each([
    { reports: ['stop 0', 'resume 5', 'stop 9'], since: 9 },
    { reports: ['stop 0', 'stop 5', 'resume 9'], since: null },
    { reports: ['resume 0', 'stop 5', 'stop 9'], since: 5 },
    { reports: ['stop 0', 'resume 4', 'stop 7', 'stop 7'], since: 7 },
  ])('$reports: whatever their order, it began with the first stop since the last resume', async (story) => {
    for (const order of orders(story.reports)) {
      const { phone } = someone();
      for (const report of order) {
        const [value, at] = report.split(' ');
        await takeIn(
          stack.database,
          preference({ value: value as Said['value'], at: Number(at), wa_id: phone }),
        );
      }
      const { body } = await call('/search', { customer: phone });
      const began = body.data.map(
        ({ since }: { since: string }) => Date.parse(since) / 1_000 - 1_790_000_000,
      );
      expect([order, began]).toEqual([order, story.since === null ? [] : [story.since]]);
    }
  });

  test('whom upstream names by 131050 is one, whether it refuses at once or later', async () => {
    const { phone: later } = someone();
    const { body } = await stack.sendToEnd(marketing(later));
    const errors = [{ code: 131050, title: 'User has stopped receiving marketing messages' }];
    const failed = {
      id: body.metaMessageId,
      status: 'failed',
      timestamp: '1790000111',
      recipient_id: later,
      errors,
    };
    await takeIn(stack.database, bodyOf('messages', { statuses: [failed] }));
    expect(await outcome(marketing(later))).toEqual(REFUSED);
    const { phone: atOnce } = someone();
    await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131050, times: 1 });
    expect(await outcome(marketing(atOnce))).toEqual([424, 'upstream_refused']);
    expect(await outcome(marketing(atOnce))).toEqual(REFUSED);
    const { body: found } = await call('/search', { customer: atOnce });
    expect(found.data).toMatchObject([{ source: 'error_131050', scope: 'marketing' }]);
  });

  test('is shown with the conversation, and can be filtered', async () => {
    const { phone } = someone();
    const { body } = await stack.send(utility(phone));
    await stack.send(utility(someone().phone));
    await takeIn(stack.database, stop(phone));
    const optOut = { scope: 'marketing', source: 'upstream', since: '2026-09-21T14:13:20.000Z' };
    expect(await conversations(`/${body.conversationId}`)).toMatchObject({ optOut });
    const { data } = await conversations('?optedOut=true');
    expect(data).toMatchObject([{ id: body.conversationId, optOut }]);
    expect((await conversations('?optedOut=false')).data).toMatchObject([{ optOut: null }]);
  });
});

describe('the tenant', () => {
  test('notes who wants no marketing, finds them, and ends it with evidence', async () => {
    const { phone } = someone();
    const added = await call('', { customer: `+${phone}`, scope: 'marketing', reason: 'asked by phone' });
    const optOut = { customer: { waId: phone }, phoneNumberId: null, scope: 'marketing', source: 'api' };
    expect(added).toMatchObject({ status: 200, body: { ...optOut, reason: 'asked by phone' } });
    expect(await outcome(marketing(phone))).toEqual(REFUSED);
    expect((await call('/search', { customer: phone })).body.data).toMatchObject([optOut]);
    expect((await call('/search', { source: 'upstream' })).body.data).toEqual([]);
    expect(await call('/end', { customer: phone, evidence: 'form 7' })).toMatchObject({
      status: 200,
      body: { ended: 1, left: [] },
    });
    expect(await outcome(marketing(phone))).toBe(200);
    expect(await call('/end', { customer: phone, evidence: 'form 7' })).toMatchObject({
      status: 404,
      body: { error: { code: 'unknown_opt_out', param: 'customer' } },
    });
    const { actions } = await queryOnly<{ actions: string[] }>(
      stack.database,
      `select array_agg(action || ' ' || coalesce(detail->>'evidence', '-') order by id) as actions
         from audit_log where waba_id = :wabaId and action like 'opt_out.%'`,
      { wabaId: stack.wabaId },
    );
    expect(actions).toEqual(['opt_out.noted -', 'opt_out.ended form 7']);
  });

  test('cannot end what upstream reported', async () => {
    const { phone } = someone();
    await takeIn(stack.database, stop(phone));
    expect(await call('/end', { customer: phone, evidence: 'x' })).toMatchObject({
      status: 409,
      body: { error: { code: 'opt_out_of_upstream' } },
    });
    await call('', { customer: phone, scope: 'all' });
    expect(await call('/end', { customer: phone, evidence: 'x' })).toMatchObject({
      status: 200,
      body: { ended: 1, left: [{ source: 'upstream' }] },
    });
    expect(await outcome(marketing(phone))).toEqual(REFUSED);
  });

  test('stops everything but what goes out in the open window with the scope all', async () => {
    const { phone } = someone();
    await call('', { customer: phone, scope: 'all' });
    const text = { to: phone, type: 'text', text: { body: 'Hello' } };
    for (const message of [text, utility(phone), marketing(phone)]) {
      expect(await outcome(message)).toEqual(REFUSED);
    }
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const inbound = { from: phone, id: `wamid.${phone}`, timestamp, type: 'text', text: { body: 'Hi' } };
    await takeIn(stack.database, bodyOf('messages', { messages: [inbound] }));
    expect(await outcome(text)).toBe(200);
    expect(await outcome(marketing(phone))).toEqual(REFUSED);
  });

  test('names a number of its own, and sees no customer of another tenant', async () => {
    const { phone } = someone();
    const foreign = await call('', { customer: phone, scope: 'marketing', phoneNumberId: '800000000000999' });
    expect([foreign.status, foreign.body.error.code]).toEqual([422, 'unknown_phone_number']);
    await call('', { customer: phone, scope: 'marketing', phoneNumberId: stack.number });
    const other = await stack.newTenant();
    const { status } = await other.send({ ...marketing(phone), phoneNumberId: other.number });
    expect([200, 202]).toContain(status);
    const answer = await stack.app.inject({
      method: 'POST',
      url: '/api/external/opt-outs/search',
      headers: { authorization: other.authorization },
      payload: { customer: phone },
    });
    expect(answer.json().data).toEqual([]);
  });
});

describe('a message that waits', () => {
  test('is not sent when its customer ends it meanwhile', async () => {
    const { phone } = someone();
    // Upstream refuses it until the customer has ended it.
    await stack.addFault({ match: 'send', kind: 'status', status: 503, code: 131016, times: 1_000 });
    const key = { 'idempotency-key': `waits-${phone}` };
    const sending = stack.send(marketing(phone), key);
    // The message of another tenant may still wait.
    const tried = async () => (await stack.sendRequests()).filter(({ id }) => id === stack.number).length;
    await eventually('the first attempt', async () => (await tried()) > 0);
    await takeIn(stack.database, stop(phone));
    await stack.clearFaults();
    const { body: first } = await sending;
    const id = String(first.serviceMessageId ?? first.error.serviceMessageId);
    await eventually('it has ended', async () => (await stack.get(id)).body.state, { is: 'failed' });
    const why = expect.stringContaining('wants no marketing');
    expect((await stack.get(id)).body.error).toMatchObject({ code: 'recipient_opted_out', message: why });
    // The request is told that it was not sent, with the reason as the message: 422 recipient_opted_out says that nothing is stored.
    const { status, body } = await stack.send(marketing(phone), key);
    expect([status, body.error]).toEqual([
      424,
      expect.objectContaining({ code: 'message_not_sent', message: why, serviceMessageId: id }),
    ]);
    const arrived = (await stack.sent()).filter((one) => JSON.stringify(one).includes(phone));
    expect(arrived).toEqual([]);
  });
});
