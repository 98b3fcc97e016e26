import { describe, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { storedEvents, takeIn } from '../../../support/take-in.ts';
import { addFacadeKey } from '../../api/graph/facade-key.ts';
import { sendingStackOfFile } from './sending-stack.ts';

const stack = sendingStackOfFile({ HELIOGRAPH_SEND_TIMEOUT_MS: '4000' });

let groups = 0;
const newGroup = () => `Y2FwaV9ncm91cDoxMjAyNTU1MDEwMDo${groups++}ZD`;
const toGroup = (to: string, more: object = {}) => ({
  recipient_type: 'group',
  to,
  type: 'text',
  text: { body: 'Hello all' },
  ...more,
});

/** Statuses of a message to a group, as upstream reports them. */
function statuses(id: string, groupId: string, ...all: object[]): Buffer {
  const common = { id, timestamp: '1790000000', recipient_id: groupId, recipient_type: 'group' };
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '12025550100', phone_number_id: stack.number },
    statuses: all.map((one) => ({ ...common, ...one })),
  };
  return Buffer.from(
    JSON.stringify({ entry: [{ id: stack.wabaId, changes: [{ field: 'messages', value }] }] }),
  );
}

describe('a message to a group', () => {
  test('reaches upstream as it was given, is in the conversation of the group, and goes out once per key', async () => {
    const group = newGroup();
    const headers = { 'idempotency-key': `group-${group}` };
    const { status, body } = await stack.send(toGroup(group), headers);
    expect(status).toBe(200);
    expect(body).not.toHaveProperty('waId');
    expect((await stack.send(toGroup(group), headers)).body).toEqual(body);
    const [taken, ...others] = await stack.sent();
    expect(others).toEqual([]);
    expect(taken?.body).toMatchObject({ recipient_type: 'group', to: group, text: { body: 'Hello all' } });
    const conversations = await query(
      stack.database,
      `select cast(id as text) as id, contact_id as contact from conversations where group_id = '${group}'`,
    );
    expect(conversations).toEqual([{ id: body.conversationId, contact: null }]);
    const again = await stack.send(toGroup(group, { text: { body: 'Second' } }));
    expect(again.body.conversationId).toBe(body.conversationId);
  });

  test('has a status of each member, and an event of each', async () => {
    const group = newGroup();
    const { body } = await stack.send(toGroup(group));
    const id = body.metaMessageId;
    await takeIn(stack.database, statuses(id, group, { status: 'sent' }));
    await takeIn(
      stack.database,
      statuses(id, group, { status: 'read', recipient_participant_id: '111' }),
      statuses(id, group, { status: 'delivered', recipient_participant_id: '111' }),
      statuses(id, group, { status: 'delivered', participant_recipient_id: '222' }),
      statuses(id, group, {
        status: 'failed',
        recipient_participant_id: '333',
        errors: [{ code: 131_026, title: 'No' }],
      }),
    );
    const { body: shown } = await stack.get(body.serviceMessageId);
    const participants = [
      { participant: '111', status: 'read', statusAt: expect.any(String) },
      { participant: '222', status: 'delivered', statusAt: expect.any(String) },
      { participant: '333', status: 'failed', statusAt: expect.any(String) },
    ];
    // The failure for one member does not end the message for the others.
    expect(shown).toMatchObject({ status: 'read', to: group, participants });
    expect(shown.statuses.map((one: Record<string, unknown>) => [one.status, one.participant])).toEqual(
      expect.arrayContaining([
        ['sent', undefined],
        ['read', '111'],
        ['delivered', '222'],
        ['failed', '333'],
      ]),
    );
    const list = await stack.app.inject({
      url: `/api/external/conversations/${body.conversationId}/messages`,
      headers: { authorization: stack.authorization },
    });
    expect(list.json().data).toMatchObject([{ metaMessageId: id, participants }]);
    const events = (await storedEvents(stack.database)).filter(
      (event) => event.type === 'status' && event.body?.includes(id),
    );
    expect(events).toHaveLength(5);
  });

  test('that fails as a whole has failed, with an event in the form of upstream', async () => {
    const group = newGroup();
    const { body } = await stack.send(toGroup(group));
    const failed = { status: 'failed', errors: [{ code: 131_000, title: 'Something went wrong' }] };
    await takeIn(stack.database, statuses(body.metaMessageId, group, failed));
    expect((await stack.get(body.serviceMessageId)).body).toMatchObject({ status: 'failed' });
  });

  test.each([
    ['a phone number', { to: '+12025550143' }, 'to'],
    ['no id', { to: undefined }, 'to'],
    ['an id that is too long', { to: 'x'.repeat(257) }, 'to'],
    ['an id with other signs', { to: 'group\u0000<b>' }, 'to'],
    ['a recipient too', { recipient: 'US.1000143' }, 'recipient'],
  ])('is refused for %s', async (_what, more, param) => {
    const { status, body } = await stack.send(toGroup(newGroup(), more));
    expect([status, body.error.param]).toEqual([400, param]);
    expect(await stack.sent()).toEqual([]);
  });

  test('can be sent through the facade, and is answered as upstream does', async () => {
    const key = await addFacadeKey(stack.database, stack.wabaId);
    const group = newGroup();
    const message = toGroup(group, { messaging_product: 'whatsapp' });
    const answer = await stack.app.inject({
      method: 'POST',
      url: `/graph/v26.0/${stack.number}/messages`,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      payload: JSON.stringify(message),
    });
    expect(answer.json()).toEqual({
      messaging_product: 'whatsapp',
      contacts: [{ input: group, wa_id: group }],
      messages: [{ id: expect.stringMatching(/^wamid\./), group_id: group }],
    });
    const found = await query(stack.database, `select 1 from conversations where group_id = '${group}'`);
    expect(found).toHaveLength(1);
  });
});
