import { describe, expect, test } from 'vitest';
import { eraseCustomer } from '../../../src/ops/erasures/erasures.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { tablesHolding } from '../../support/database-scan.ts';
import { storedEvents, takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { NUMBER, OTHER_WABA, startTestApi, WABA } from '../api/api-harness.ts';
import { client } from '../deliveries/event-fixtures.ts';
import { startErasureWorld } from '../erasures/erasure-world.ts';
import { ASHA, fill } from '../erasures/filled-world.ts';

const CUSTOMER = '12025550143';

function body(field: string, value: object, wabaId = WABA): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: NUMBER };
  const change = { field, value: { messaging_product: 'whatsapp', metadata, ...value } };
  return Buffer.from(JSON.stringify({ entry: [{ id: wabaId, changes: [change] }] }));
}

/** What the business wrote in its app. */
function echo(id: string, members: object = {}): object {
  const text = { type: 'text', text: { body: `Text of ${id}` } };
  return { from: '12025550100', to: CUSTOMER, id, timestamp: '1790000000', ...text, ...members };
}

const echoes = (...list: object[]) => body('smb_message_echoes', { message_echoes: list });

const status = (id: string, name: string) =>
  body('messages', { statuses: [{ id, status: name, timestamp: '1790000009', recipient_id: CUSTOMER }] });

const written = (id: string) =>
  body('messages', {
    messages: [{ id, from: CUSTOMER, timestamp: '1790000001', type: 'text', text: { body: 'Hi' } }],
  });

async function world() {
  const api = await startTestApi();
  const { call } = await client(api);
  const conversations = async () => (await call('GET', '/api/external/conversations')).json().data;
  const messages = async () => {
    const [{ id }] = await conversations();
    return (await call('GET', `/api/external/conversations/${id}/messages?order=asc`)).json().data;
  };
  return { ...api, call, conversations, messages };
}

describe('what the business wrote in the WhatsApp Business app', () => {
  test('is an outbound message of the conversation, which statuses find, early and late', async () => {
    const { database, call, conversations, messages } = await world();
    await takeIn(database, written('wamid.in'), status('wamid.e1', 'delivered'));
    await takeIn(database, echoes(echo('wamid.e1'), echo('wamid.e2', { to: `+${CUSTOMER}` })));
    await takeIn(database, status('wamid.e2', 'read'), written('wamid.in2'));
    expect(await conversations()).toHaveLength(1);
    const list = await messages();
    const shown = list.map((m: Record<string, unknown>) => [
      m.metaMessageId,
      m.direction,
      m.origin,
      m.state,
      m.status,
    ]);
    expect(shown).toEqual([
      ['wamid.in', 'inbound', undefined, 'received', null],
      ['wamid.e1', 'outbound', 'business_app', 'accepted', 'delivered'],
      ['wamid.e2', 'outbound', 'business_app', 'accepted', 'read'],
      ['wamid.in2', 'inbound', undefined, 'received', null],
    ]);
    expect(list[1]).toMatchObject({
      timestamp: '2026-09-21T14:13:20.000Z',
      message: echo('wamid.e1'),
      mediaPending: false,
    });
    const detail = await call('GET', `/api/external/messages/${list[2].serviceMessageId}`);
    expect(detail.json()).toMatchObject({ origin: 'business_app', statuses: [{ status: 'read' }] });
  });

  test('opens a conversation, and neither the window nor an event for who did not ask', async () => {
    const { database, call, conversations } = await world();
    await addEndpoint(database, WABA, 'https://plain.example/hook');
    await takeIn(database, echoes(echo('wamid.e1', { to: undefined, to_user_id: 'US.7' })));
    const [{ id, customer }] = await conversations();
    expect(customer).toMatchObject({ userId: 'US.7' });
    const { customerServiceWindow } = (await call('GET', `/api/external/conversations/${id}`)).json();
    expect(customerServiceWindow.isOpen).toBe(false);
    expect(await query(database, 'select event_uuid from delivery_queue')).toEqual([]);
    expect((await storedEvents(database)).map(({ type }) => type)).toEqual(['upstream.smb_message_echoes']);
  });

  test('counts once, keeps its order, and is edited and deleted', async () => {
    const { database, messages } = await world();
    const edit = {
      type: 'edit',
      edit: { original_message_id: 'wamid.e1', message: { type: 'text', text: { body: 'New' } } },
    };
    const revoke = { type: 'revoke', revoke: { original_message_id: 'wamid.e2' } };
    await takeIn(database, echoes(echo('wamid.e1')), echoes(echo('wamid.e1')));
    await takeIn(
      database,
      echoes(echo('wamid.e2'), echo('wamid.e1'), echo('wamid.e3', edit), echo('wamid.e4', revoke)),
    );
    const list = await messages();
    expect(list.map((m: { metaMessageId: string }) => m.metaMessageId)).toEqual([
      'wamid.e1',
      'wamid.e2',
      'wamid.e3',
      'wamid.e4',
    ]);
    expect(list[0]).toMatchObject({
      editedBy: list[2].serviceMessageId,
      editedMessage: { text: { body: 'New' } },
    });
    expect(list[1].revokedAt).toBeDefined();
  });

  test('has no short-lived address of its file', async () => {
    const { database, messages } = await world();
    const image = {
      id: '1',
      mime_type: 'image/jpeg',
      url: 'https://lookaside.example/secret',
      caption: 'Door',
    };
    await takeIn(database, echoes(echo('wamid.e1', { type: 'image', image })));
    expect((await messages())[0]).toMatchObject({
      mediaUrl: null,
      message: { image: { id: '1', caption: 'Door' } },
    });
    expect(JSON.stringify(await messages())).not.toContain('secret');
  });

  test('harms nothing when it is unlike any message, or of another WABA', async () => {
    const { database, conversations, messages } = await world();
    const odd = [
      null,
      7,
      [],
      {},
      echo('x'.repeat(9_000)),
      echo('wamid.no', { to: undefined }),
      echo('wamid.far', { to: 'y'.repeat(9_000) }),
    ];
    await takeIn(
      database,
      body('smb_message_echoes', {
        message_echoes: [...odd, echo('wamid.\u0000\ud800'), echo('wamid.ok', { type: 7 })],
      }),
      body('smb_message_echoes', { message_echoes: 'none' }),
      body('smb_message_echoes', { message_echoes: [echo('wamid.foreign')] }, OTHER_WABA),
      written('wamid.in'),
    );
    expect(await conversations()).toHaveLength(1);
    const types = (await messages()).map((m: { type: string }) => m.type);
    expect(types.sort()).toEqual(['text', 'text', 'unknown']);
    expect(await query(database, 'select distinct state from inbox')).toEqual([{ state: 'done' }]);
  });

  test('goes with the customer who is erased, and does not come back', async () => {
    const built = await startErasureWorld();
    await fill(built);
    const again = echoes(echo('wamid.asha', { to: ASHA.waId }), echo('wamid.other'));
    await takeIn(built.database, again);
    const { erasureId } = await eraseCustomer(built.tools, WABA, { phone: ASHA.waId });
    await built.erase(erasureId);
    expect(await tablesHolding(built.database, [ASHA.waId, 'wamid.asha'])).toEqual([]);
    await takeIn(built.database, again, echoes(echo('wamid.asha', { to: ASHA.waId })));
    const left = await query(
      built.database,
      `select upstream_id as id from messages where origin is not null`,
    );
    expect(left).toEqual([{ id: 'wamid.other' }]);
  });
});
