import { describe, expect, test } from 'vitest';
import { query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { NUMBER, OTHER_WABA, startTestApi, WABA } from '../api/api-harness.ts';
import { client } from '../deliveries/event-fixtures.ts';

const CALLER = '12025550143';
const USER = 'US.10000000000000000143';
const HOUR_S = 3_600;
const nowS = () => Math.floor(Date.now() / 1_000);

function callsBody(value: object, { wabaId = WABA, phoneNumberId = NUMBER } = {}): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: phoneNumberId };
  const change = { field: 'calls', value: { messaging_product: 'whatsapp', metadata, ...value } };
  return Buffer.from(JSON.stringify({ entry: [{ id: wabaId, changes: [change] }] }));
}

/** A call of the customer that began so many seconds ago. */
function call(secondsAgo: number, members: object = {}, owner = {}): Buffer {
  const timestamp = String(nowS() - secondsAgo);
  const made = { id: `wacid.${secondsAgo}`, from: CALLER, to: '12025550100', event: 'connect', timestamp };
  return callsBody({ calls: [{ ...made, direction: 'USER_INITIATED', ...members }] }, owner);
}

function messageBody(secondsAgo: number): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: NUMBER };
  const message = { id: `wamid.${secondsAgo}`, from: CALLER, timestamp: String(nowS() - secondsAgo) };
  const value = { metadata, messages: [{ ...message, type: 'text', text: { body: 'Hi' } }] };
  return Buffer.from(JSON.stringify({ entry: [{ id: WABA, changes: [{ field: 'messages', value }] }] }));
}

async function world() {
  const api = await startTestApi();
  const { call: request } = await client(api);
  const conversations = async () => (await request('GET', '/api/external/conversations')).json().data;
  const only = async () => {
    const [{ id }] = await conversations();
    return (await request('GET', `/api/external/conversations/${id}`)).json();
  };
  return { ...api, conversations, only };
}

describe('a call', () => {
  test('of a customer without a conversation opens one, with its window', async () => {
    const { database, only, conversations } = await world();
    await takeIn(database, call(60, { from_user_id: USER }));
    expect(await conversations()).toHaveLength(1);
    expect(await only()).toMatchObject({
      customer: { waId: CALLER, userId: USER },
      customerServiceWindow: { isOpen: true, lastInboundAt: null },
      lastMessage: { type: 'call', call: { state: 'ringing' } },
    });
    const { lastCallAt, expiresAt } = (await only()).customerServiceWindow;
    expect(Date.parse(expiresAt) - Date.parse(lastCallAt)).toBe(24 * HOUR_S * 1_000);
    // What was opened goes on as the conversation of what they write.
    await takeIn(database, messageBody(30));
    expect(await conversations()).toHaveLength(1);
  });

  test('opens the window that messages have left, until the later of both is a day old', async () => {
    const { database, only } = await world();
    await takeIn(database, messageBody(30 * HOUR_S));
    expect((await only()).customerServiceWindow.isOpen).toBe(false);
    const before = await only();
    await takeIn(database, call(23 * HOUR_S), call(26 * HOUR_S));
    const { customerServiceWindow, lastMessageAt } = await only();
    expect(customerServiceWindow.isOpen).toBe(true);
    expect(Date.parse(customerServiceWindow.lastCallAt)).toBeLessThan(Date.now() - 22 * HOUR_S * 1_000);
    expect(lastMessageAt).toBe(before.lastMessageAt);
    await takeIn(database, messageBody(60));
    const { lastInboundAt, expiresAt } = (await only()).customerServiceWindow;
    expect(Date.parse(expiresAt) - Date.parse(lastInboundAt)).toBe(24 * HOUR_S * 1_000);
  });

  test('in the future does not keep the window open', async () => {
    const { database, only } = await world();
    await takeIn(database, call(-90 * 24 * HOUR_S));
    expect(Date.parse((await only()).customerServiceWindow.lastCallAt)).toBeLessThanOrEqual(Date.now());
  });

  test('of the business opens it when the customer accepts, and not before', async () => {
    const { database, only, conversations } = await world();
    const own = { from: '12025550100', to: CALLER };
    const status = (name: string) =>
      callsBody({
        statuses: [
          { id: 'wacid.1', type: 'call', status: name, recipient_id: CALLER, timestamp: String(nowS()) },
        ],
      });
    await takeIn(
      database,
      call(60, { ...own, direction: 'BUSINESS_INITIATED' }),
      call(61, { ...own, direction: undefined }),
      call(62, { event: 'terminate' }),
      status('RINGING'),
    );
    expect(await conversations()).toHaveLength(1);
    expect((await only()).customerServiceWindow).toMatchObject({ isOpen: false, lastInboundAt: null });
    await takeIn(database, status('ACCEPTED'));
    expect((await only()).customerServiceWindow.isOpen).toBe(true);
  });

  test('that names a number of another WABA, or that is unlike any call, opens nothing and harms nothing', async () => {
    const { database, conversations } = await world();
    await takeIn(
      database,
      call(60, {}, { wabaId: OTHER_WABA }),
      call(61, {}, { phoneNumberId: '999' }),
      call(62, { from: undefined }),
      call(63, { timestamp: 'soon' }),
      call(64, { from: { a: 1 }, from_user_id: 'x'.repeat(9_000) }),
      callsBody({ calls: 'none', statuses: [null, 1, []] }),
      messageBody(60),
    );
    expect(await conversations()).toHaveLength(1);
    const states = await query(database, `select distinct state from inbox`);
    expect(states).toEqual([{ state: 'done' }]);
  });
});

test('a voicemail is the audio message that it is, with the id of a call', async () => {
  const { database, only } = await world();
  await takeIn(database, fixtureBody('in_audio_voicemail_wacid'));
  expect(await only()).toMatchObject({
    customerServiceWindow: { isOpen: expect.any(Boolean), lastInboundAt: expect.any(String) },
    lastMessage: {
      metaMessageId: expect.stringMatching(/^wacid\./),
      direction: 'inbound',
      type: 'audio',
      mediaPending: true,
      mediaType: 'audio',
    },
  });
  const types = await query(database, 'select distinct event_type as type from events');
  expect(types).toEqual([{ type: 'message' }]);
});
