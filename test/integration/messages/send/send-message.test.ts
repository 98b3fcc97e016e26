import { describe, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { SEND_EXAMPLES } from '../../../support/send-examples.ts';
import { takeIn } from '../../../support/take-in.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { sendingStackOfFile, startSendingStack, textTo } from './sending-stack.ts';

const stack = sendingStackOfFile({ HELIOGRAPH_SEND_TIMEOUT_MS: '4000' });

/** A webhook body with a status of a message of ours. */
function statusBody(id: string, status: string, rest: Record<string, unknown> = {}): Buffer {
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '12025550100', phone_number_id: stack.number },
    statuses: [{ id, status, timestamp: '1790000000', recipient_id: '12025550143', ...rest }],
  };
  const entry = [{ id: stack.wabaId, changes: [{ field: 'messages', value }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

describe('a message', () => {
  test.each(Object.entries(SEND_EXAMPLES))(
    'of kind %s reaches upstream as it was given',
    async (_kind, example) => {
      const { status, body } = await stack.send({ to: '+12025550143', ...example });
      expect([status, body]).toEqual([
        200,
        {
          serviceMessageId: expect.stringMatching(/^\d+$/),
          conversationId: expect.stringMatching(/^\d+$/),
          metaMessageId: expect.stringMatching(/^wamid\./),
          state: 'accepted',
          waId: '12025550143',
        },
      ]);
      const [taken, ...others] = await stack.sent();
      expect(others).toEqual([]);
      expect(taken?.id).toBe(body.metaMessageId);
      expect(taken?.body).toEqual({
        messaging_product: 'whatsapp',
        recipient_type: 'individual',
        to: '+12025550143',
        biz_opaque_callback_data: `heliograph:${body.serviceMessageId}`,
        ...example,
      });
      const { body: shown } = await stack.get(body.serviceMessageId);
      expect(shown).toMatchObject({ ...body, direction: 'outbound', type: example.type, to: '+12025550143' });
      expect(shown.message).toEqual(taken?.body);
    },
  );

  test('to a user id, with extra members, a reply context and data of the sender’s own', async () => {
    const { status, body } = await stack.send({
      recipient: 'US.1000143',
      type: 'text',
      text: { body: 'Hi' },
      context: { message_id: 'wamid.before' },
      biz_opaque_callback_data: 'mine',
      extra: { campaign: { id: 'c' } },
    });
    expect(status).toBe(200);
    expect((await stack.sent())[0]?.body).toEqual({
      messaging_product: 'whatsapp',
      recipient_type: 'individual',
      recipient: 'US.1000143',
      type: 'text',
      text: { body: 'Hi' },
      campaign: { id: 'c' },
      context: { message_id: 'wamid.before' },
      biz_opaque_callback_data: 'mine',
    });
    const { body: shown } = await stack.get(body.serviceMessageId);
    expect(shown).toMatchObject({ recipient: 'US.1000143', contextId: 'wamid.before' });
  });

  test('of Direct Send, or with any other member beside its content, goes out with it and with a warning', async () => {
    const direct = { category: 'utility', ttl_seconds: 600, direct_send_config: { template_name: 'parcel' } };
    const { status, body } = await stack.send({ ...textTo(), ...direct, surprise: [1] });
    expect(status).toBe(200);
    expect(body.warnings.map(({ param }: { param: string }) => param)).toEqual([
      ...Object.keys(direct),
      'surprise',
    ]);
    expect((await stack.sent())[0]?.body).toMatchObject({ ...direct, surprise: [1] });
    const refused = await stack.send({ ...textTo(), category: 'utility', ttl_seconds: 10 });
    expect([refused.status, refused.body.error.upstream?.code]).toEqual([424, 100]);
  });

  test.each(['access_token', 'method', 'batch', 'status'])(
    'with %s beside its content is refused, and goes nowhere',
    async (name) => {
      const { status, body } = await stack.send({ ...textTo(), [name]: 'x' });
      expect([status, body.error.param]).toEqual([400, name]);
      expect(await stack.sent()).toEqual([]);
    },
  );

  test('stands in the conversation that the customer’s own messages are in', async () => {
    const message = {
      from: '12025550199',
      id: 'wamid.in-1',
      timestamp: '1790000000',
      type: 'text',
      text: { body: 'Hi' },
    };
    const value = {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: '12025550100', phone_number_id: stack.number },
      contacts: [{ profile: { name: 'Asha' }, wa_id: '12025550199', user_id: 'US.199' }],
      messages: [message],
    };
    const entry = [{ id: stack.wabaId, changes: [{ field: 'messages', value }] }];
    await takeIn(stack.database, Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry })));
    const byPhone = await stack.send(textTo('+1 (202) 555-0199'));
    const byId = await stack.send({ ...textTo(), to: undefined, recipient: 'US.199' });
    const url = `/api/external/conversations/${byPhone.body.conversationId}/messages?order=asc`;
    const list = await stack.app.inject({ url, headers: { authorization: stack.authorization } });
    const rows = list.json().data as { direction: string; metaMessageId: string }[];
    expect(rows.map(({ direction, metaMessageId }) => [direction, metaMessageId])).toEqual([
      ['inbound', 'wamid.in-1'],
      ['outbound', byPhone.body.metaMessageId],
      ['outbound', byId.body.metaMessageId],
    ]);
    const [inbound] = list.json().data as { serviceMessageId: string }[];
    const shown = await stack.get(inbound?.serviceMessageId ?? '');
    expect(shown.body).toMatchObject({ state: 'received', direction: 'inbound', statuses: [], message });
  });

  test('shows the statuses that upstream reports, with pricing, errors and advice', async () => {
    const { body } = await stack.send(textTo());
    const id = body.metaMessageId as string;
    const pricing = { billable: true, pricing_model: 'PMP', type: 'regular', category: 'service' };
    await takeIn(stack.database, statusBody(id, 'sent', { pricing }));
    const errors = [{ code: 131049, title: 'Healthy ecosystem', error_data: { details: 'd' } }];
    await takeIn(stack.database, statusBody(id, 'failed', { errors }));
    const { body: shown } = await stack.get(body.serviceMessageId);
    expect(shown).toMatchObject({
      state: 'accepted',
      status: 'failed',
      statuses: [
        { status: 'sent', timestamp: '2026-09-21T14:13:20.000Z', pricing, recipientId: '12025550143' },
        { status: 'failed', errors: [{ ...errors[0], advice: expect.stringContaining('24 hours') }] },
      ],
    });
  });

  test('shows statuses of one batch and one second in the order of its life', async () => {
    const { body } = await stack.send(textTo());
    const id = body.metaMessageId as string;
    const order = ['sent', 'delivered', 'read', 'played', 'failed', 'unheard-of'];
    await takeIn(stack.database, ...[...order].reverse().map((status) => statusBody(id, status)));
    const { body: shown } = await stack.get(body.serviceMessageId);
    expect(shown.statuses.map(({ status }: { status: string }) => status)).toEqual(order);
  });

  test('from a number of another WABA is refused exactly as from one that does not exist', async () => {
    const foreign = await stack.send({ ...textTo(), phoneNumberId: '800000000000221' });
    const unknown = await stack.send({ ...textTo(), phoneNumberId: '1' });
    expect(foreign.status).toBe(422);
    expect(foreign.body.error).toMatchObject({ code: 'unknown_phone_number', param: 'phoneNumberId' });
    const withoutId = ({ requestId: _, ...error }: Record<string, unknown>) => error;
    expect(withoutId(foreign.body.error)).toEqual(withoutId(unknown.body.error));
    expect(await stack.sendRequests()).toEqual([]);
  });

  test('that cannot be sent is refused with the member that is wrong, and nothing is stored', async () => {
    const wrong = await stack.send({ ...textTo(), text: {} });
    expect([wrong.status, wrong.body.error.code, wrong.body.error.param]).toEqual([
      400,
      'invalid_parameter',
      'text/body',
    ]);
    for (const payload of ['', '{', 'null', '[]', '"x"', '{"__proto__":{}}']) {
      const response = await stack.app.inject({
        method: 'POST',
        url: '/api/external/messages',
        headers: { authorization: stack.authorization, 'content-type': 'application/json' },
        payload,
      });
      expect([payload, response.statusCode]).toEqual([payload, 400]);
    }
    const stored = await query(stack.database, 'select 1 from messages where waba_id = :wabaId', {
      wabaId: stack.wabaId,
    });
    expect(stored).toEqual([]);
  });
});

describe('an upstream refusal', () => {
  test('is told with upstream’s own error, advice, and a failed status event', async () => {
    await addEndpoint(stack.database, stack.wabaId, 'https://tenant.example/hook');
    await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131047, times: 1 });
    const { status, body } = await stack.send(textTo('+12025550142'));
    expect(status).toBe(424);
    expect(body.error).toMatchObject({
      type: 'upstream_error',
      code: 'upstream_refused',
      param: null,
      docUrl: expect.stringContaining('#upstream_refused'),
      advice: expect.stringContaining('template'),
      upstream: { code: 131047, type: 'OAuthException', fbtrace_id: expect.any(String) },
    });
    const id = body.error.serviceMessageId as string;
    const events = await query<{ body: string; deliveries: string }>(
      stack.database,
      `select convert_from(body, 'UTF8') as body,
              (select count(*) from deliveries d where d.event_uuid = e.id) as deliveries
         from events e where event_id = :id`,
      { id: `local:${id}` },
    );
    expect(events).toHaveLength(1);
    expect(events[0]?.deliveries).toBe('1');
    expect(JSON.parse(events[0]?.body ?? '{}')).toMatchObject({
      eventType: 'status',
      eventId: `local:${id}`,
      phoneNumberId: stack.number,
      data: {
        metadata: { phone_number_id: stack.number, display_phone_number: '12025550100' },
        status: {
          id: `local:${id}`,
          status: 'failed',
          timestamp: expect.stringMatching(/^\d{10}$/),
          recipient_id: '12025550142',
          errors: [{ code: 131047 }],
        },
      },
    });
    const { body: shown } = await stack.get(id);
    expect(shown).toMatchObject({
      state: 'failed',
      status: 'failed',
      metaMessageId: null,
      error: { code: 'upstream_refused', upstream: { code: 131047 } },
      statuses: [{ status: 'failed', errors: [{ code: 131047, advice: expect.any(String) }] }],
    });
    const workflow = await stack.client.workflow.getHandle(`send/${id}`).result();
    expect(workflow).toMatchObject({ outcome: 'failed' });
    const open = "select 1 from workflow_tasks where workflow_type = 'sendMessage' and waba_id = :wabaId";
    expect(await query(stack.database, open, { wabaId: stack.wabaId })).toEqual([]);
  });

  test('that passes is tried again until upstream takes the message', async () => {
    await stack.addFault({ match: 'send', kind: 'status', status: 503, code: 2, times: 1 });
    const { status, body } = await stack.send(textTo());
    expect([status, body.state]).toEqual([200, 'accepted']);
    expect(await stack.sendRequests()).toHaveLength(2);
    expect(await stack.sent()).toHaveLength(1);
    expect((await stack.get(body.serviceMessageId)).body.attempts).toBe(2);
  });

  test('for want of an access token says whose turn it is', async () => {
    await stack.setAccessToken(null);
    const { status, body } = await stack.send(textTo());
    expect([status, body.error.code]).toEqual([424, 'message_not_sent']);
    expect(body.error.advice).toMatch(/operator/);
    expect(await stack.sendRequests()).toEqual([]);
  });

  test('of the access token is noted at the WABA, of which people are told', async () => {
    await stack.addFault({ match: 'send', kind: 'status', status: 401, code: 190, times: 1 });
    expect((await stack.send(textTo())).status).toBe(424);
    const noted = `select token_refused_at is not null as refused, token_problem is not null as told
                     from wabas where waba_id = :wabaId`;
    expect(await query(stack.database, noted, { wabaId: stack.wabaId })).toEqual([
      { refused: true, told: true },
    ]);
  });
});

describe('an attempt without an answer', () => {
  test.each([
    ['the connection is cut after upstream took it', { kind: 'reset', accepted: true }],
    ['upstream answers too late', { kind: 'slow', delayMs: 8_000, accepted: true }],
  ] as const)('is unknown and never repeated: %s', async (_name, fault) => {
    await stack.addFault({ match: 'send', ...fault, times: 1 });
    const { status, body } = await stack.send(textTo());
    expect([status, body.state, body.metaMessageId]).toEqual([202, 'unknown', null]);
    expect(body.advice).toMatch(/twice/);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(await stack.sendRequests()).toHaveLength(1);
    const { body: shown } = await stack.get(body.serviceMessageId);
    expect(shown).toMatchObject({ state: 'unknown', error: { code: 'outcome_unknown' }, statuses: [] });
  });

  test('that is lost while no access token is usable is unknown, and the message does not hang', async () => {
    // The first attempt is refused for now; then it is as if a second one had died with its worker.
    await stack.addFault({ match: 'send', kind: 'status', status: 503, code: 2, times: 1 });
    const answer = stack.send(textTo('+12025550177'));
    await eventually('an attempt was lost', async () => {
      const lost = await query(
        stack.database,
        `update outbound_messages set state = 'sending', sending_until = now() + interval '3 seconds'
          where recipient = '12025550177' and state = 'queued' and attempts = 1 returning 1`,
      );
      return lost.length === 1;
    });
    await stack.setAccessToken(null);
    const { status, body } = await answer;
    expect([status, body.state]).toEqual([202, 'unknown']);
    expect(await stack.sendRequests()).toHaveLength(1);
    const open = "select 1 from workflow_tasks where workflow_type = 'sendMessage' and waba_id = :wabaId";
    expect(await query(stack.database, open, { wabaId: stack.wabaId })).toEqual([]);
  });

  test('is cleared up by the first status that carries the message’s mark', async () => {
    await stack.addFault({ match: 'send', kind: 'reset', accepted: true, times: 1 });
    const { body } = await stack.send(textTo());
    expect(body.state).toBe('unknown');
    const [taken] = await stack.sent();
    const marker = { biz_opaque_callback_data: `heliograph:${body.serviceMessageId}` };
    await takeIn(stack.database, statusBody(taken?.id ?? '', 'delivered', marker));
    const { body: shown } = await stack.get(body.serviceMessageId);
    expect(shown).toMatchObject({ state: 'accepted', metaMessageId: taken?.id, status: 'delivered' });
    expect(shown.error).toBeUndefined();
  });
});

describe('a slow upstream', () => {
  test('is not waited for beyond 10 s: 202, and the message is sent all the same', async () => {
    const slow = await startSendingStack();
    try {
      await slow.addFault({ match: 'send', kind: 'slow', delayMs: 13_000, times: 1 });
      const { status, body } = await slow.send(textTo());
      // An answer that was waited for would be `accepted`.
      expect([status, body.state, body.metaMessageId]).toEqual([202, 'queued', null]);
      await eventually(
        'the message is accepted',
        async () => (await slow.get(body.serviceMessageId)).body.state === 'accepted',
      );
      expect(await slow.sent()).toHaveLength(1);
    } finally {
      await slow.stop();
    }
  });
});
