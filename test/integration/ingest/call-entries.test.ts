import { describe, expect, test } from 'vitest';
import { query } from '../../../src/platform/postgres/sql.ts';
import { orders } from '../../support/orders.ts';
import { takeIn } from '../../support/take-in.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { NUMBER, startTestApi, WABA } from '../api/api-harness.ts';
import { client } from '../deliveries/event-fixtures.ts';

/** The reports of a call become one entry of its conversation, in whatever order they come. */

const CUSTOMER = '12025550143';
const USER = 'US.10000000000000000143';
const BUSINESS = '12025550100';
const at = (seconds: number) => new Date(seconds * 1_000).toISOString();

function callsBody(value: object): Buffer {
  const metadata = { display_phone_number: BUSINESS, phone_number_id: NUMBER };
  const change = { field: 'calls', value: { messaging_product: 'whatsapp', metadata, ...value } };
  return Buffer.from(JSON.stringify({ entry: [{ id: WABA, changes: [change] }] }));
}

async function world() {
  const api = await startTestApi();
  const { call: request } = await client(api);
  const entries = async () => {
    const { data } = (await request('GET', '/api/external/conversations')).json();
    const lists = data.map(
      async ({ id }: { id: string }) =>
        (await request('GET', `/api/external/conversations/${id}/messages`)).json().data,
    );
    return (await Promise.all(lists)).flat();
  };
  return { ...api, request, entries };
}

const shown = ({
  serviceMessageId: _id,
  conversationId: _conversation,
  createdAt: _at,
  ...entry
}: Record<string, unknown>) => entry;

const OUTBOUND = (() => {
  const call = {
    id: 'wacid.out',
    from: BUSINESS,
    to: CUSTOMER,
    to_user_id: USER,
    direction: 'BUSINESS_INITIATED',
  };
  const status = (name: string, seconds: number) =>
    callsBody({
      statuses: [
        { id: 'wacid.out', type: 'call', status: name, recipient_id: CUSTOMER, timestamp: String(seconds) },
      ],
    });
  const end = {
    event: 'terminate',
    status: 'COMPLETED',
    start_time: '1790000140',
    end_time: '1790000180',
    duration: '40',
  };
  return [
    callsBody({ calls: [{ ...call, event: 'connect', timestamp: '1790000131' }] }),
    status('RINGING', 1_790_000_132),
    status('ACCEPTED', 1_790_000_140),
    callsBody({ calls: [{ ...call, ...end, timestamp: '1790000181' }] }),
  ];
})();

describe('a call', () => {
  test('of a customer is one entry, with its state and duration', async () => {
    const { database, entries, request } = await world();
    await takeIn(database, fixtureBody('call_connect_user_initiated'));
    expect(await entries()).toMatchObject([
      { type: 'call', call: { state: 'ringing', durationSeconds: null } },
    ]);
    await takeIn(database, fixtureBody('call_terminate_completed_mixed_case'));
    const [entry, ...others] = await entries();
    expect(others).toEqual([]);
    expect(entry).toMatchObject({
      metaMessageId: expect.stringMatching(/^wacid\./),
      direction: 'inbound',
      type: 'call',
      timestamp: at(1_790_000_130),
      state: 'received',
      call: {
        ...{ state: 'completed', durationSeconds: 120, errorCode: null },
        ...{ startedAt: at(1_790_000_135), endedAt: at(1_790_000_255) },
      },
      message: { type: 'call', call: { direction: 'USER_INITIATED', status: 'COMPLETED', duration: 120 } },
    });
    expect(JSON.stringify(entry)).not.toContain('sdp');
    // A receipt would name what is no message.
    const read = await request('POST', `/api/external/messages/${entry.serviceMessageId}/read`, {});
    expect([read.statusCode, read.json().error.code]).toEqual([422, 'message_not_inbound']);
  });

  test('is the same entry whatever order its reports come in, and however often', async () => {
    const { database, entries } = await world();
    const outcomes = new Set<string>();
    for (const order of orders(OUTBOUND)) {
      await takeIn(database, ...order, ...order.toReversed());
      const all = await entries();
      expect(all).toHaveLength(1);
      outcomes.add(JSON.stringify(shown(all[0])));
      await query(database, 'delete from messages');
      await query(database, 'delete from dedup_keys');
    }
    expect([...outcomes].map((one) => JSON.parse(one))).toMatchObject([
      {
        direction: 'outbound',
        timestamp: at(1_790_000_131),
        call: { state: 'completed', durationSeconds: 40 },
      },
    ]);
  });

  test('whose numbers upstream swapped is in the conversation of its customer, beside that of its status', async () => {
    const { database, entries } = await world();
    await takeIn(
      database,
      fixtureBody('call_status_ringing'),
      fixtureBody('call_connect_business_initiated_swapped'),
    );
    expect(await entries()).toMatchObject([{ direction: 'outbound', call: { state: 'ringing' } }]);
    const customers = await query(database, 'select wa_id as "waId" from contacts');
    expect(customers).toEqual([{ waId: CUSTOMER }]);
  });

  test('that fails has upstream’s code, and its voicemail is a message of its own, with the same id too', async () => {
    const { database, entries } = await world();
    const call = { id: 'wacid.in', from: CUSTOMER, to: BUSINESS, direction: 'USER_INITIATED' };
    const failed = { event: 'terminate', status: 'FAILED', timestamp: '1790000200' };
    const metadata = { display_phone_number: BUSINESS, phone_number_id: NUMBER };
    const voicemail = {
      id: 'wacid.in',
      from: CUSTOMER,
      timestamp: '1790000310',
      type: 'audio',
      audio: { id: '600000000000502' },
    };
    const value = { metadata, messages: [voicemail] };
    await takeIn(
      database,
      callsBody({ calls: [{ ...call, ...failed }], errors: [{ code: 138_007, message: 'Timeout' }] }),
      Buffer.from(JSON.stringify({ entry: [{ id: WABA, changes: [{ field: 'messages', value }] }] })),
    );
    expect(
      (await entries())
        .map(({ type, metaMessageId }: Record<string, unknown>) => [type, metaMessageId])
        .sort(),
    ).toEqual([
      ['audio', 'wacid.in'],
      ['call', 'wacid.in'],
    ]);
    expect(await entries()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ call: expect.objectContaining({ state: 'failed', errorCode: 138_007 }) }),
      ]),
    );
  });
});
