import { describe, expect, test } from 'vitest';
import { findThread } from '../../../src/features/messages/conversations/thread.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { storedEvents, takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { NUMBER, startTestApi, WABA } from '../api/api-harness.ts';
import { client } from '../deliveries/event-fixtures.ts';

/** Messages whose `timestamp` cannot be: they are stored and delivered as all others, and leave nothing behind that stays wrong. */

const DAY_MS = 86_400_000;
const nowSeconds = () => Math.floor(Date.now() / 1_000);
const AHEAD = String(nowSeconds() + 365 * 86_400);

const ODD: readonly [name: string, timestamp: unknown][] = [
  ['a year ahead', AHEAD],
  ['the year 9999 in milliseconds', '253402300799000'],
  ['beyond all years', '99999999999999999999'],
  ['1970', '1'],
  ['nought', '0'],
  ['words', 'tomorrow'],
  ['a JSON number', nowSeconds() + 365 * 86_400],
  ['missing', undefined],
];

type Content = Record<string, unknown>;

function bodyWith(field: 'messages' | 'standby', from: string, message: Content): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: NUMBER };
  const messages = [{ from, type: 'text', text: { body: 'Hello' }, ...message }];
  const contacts = [{ profile: { name: 'Asha' }, wa_id: from }];
  const lists = { contacts, messages };
  const value = {
    messaging_product: 'whatsapp',
    metadata,
    ...(field === 'standby' ? { standby: lists } : lists),
  };
  return Buffer.from(JSON.stringify({ entry: [{ id: WABA, changes: [{ field, value }] }] }));
}

const [ASHA, BO] = ['12025550143', '12025550144'];
const usual = (from: string, id: string, more: Content = {}) =>
  bodyWith('messages', from, { id, timestamp: String(nowSeconds()), ...more });

async function world() {
  const api = await startTestApi();
  const { call } = await client(api);
  await addEndpoint(api.database, WABA, 'https://shop.example/hook');
  const list = async () => (await call('GET', '/api/external/conversations')).json().data;
  const ids = async (): Promise<string[]> =>
    (await list()).map(({ customer }: { customer: { waId: string } }) => customer.waId);
  const of = async (waId: string) => {
    const all: { id: string; customer: { waId: string } }[] = await list();
    const id = all.find(({ customer }) => customer.waId === waId)?.id ?? '';
    const shown = (await call('GET', `/api/external/conversations/${id}`)).json();
    const messages = (await call('GET', `/api/external/conversations/${id}/messages?order=asc`)).json().data;
    return { id, window: shown.customerServiceWindow, messages };
  };
  return { ...api, ids, of };
}

/** As if so much time had gone by since all that was stored; what is still ahead stays where it is. */
async function later(database: Awaited<ReturnType<typeof world>>['database'], hours: number): Promise<void> {
  const text = `update messages set created_at = created_at - :hours * interval '1 hour',
    sent_at = case when sent_at <= now() then sent_at - :hours * interval '1 hour' else sent_at end`;
  await execute(database, text, { hours });
}

describe.each(ODD)('a message whose time is %s', (_, timestamp) => {
  test('is stored and delivered as it is, in its place, and closes and opens no window for ever', async () => {
    const { database, ids, of } = await world();
    await takeIn(database, usual(ASHA, 'wamid.a1'));
    await takeIn(database, bodyWith('messages', BO, { id: 'wamid.odd', timestamp }));
    const event = (await storedEvents(database)).find(({ eventId }) => eventId === 'wamid.odd');
    expect(JSON.parse(event?.body ?? '{}').data.message.timestamp).toEqual(timestamp);
    const due = await query(database, `select from delivery_queue where state = 'due'`);
    expect(due).toHaveLength(2);
    expect(await ids()).toEqual([BO, ASHA]);

    const odd = (await of(BO)).window;
    const latest = Date.now() + DAY_MS;
    if (odd.isOpen) expect(Date.parse(odd.expiresAt)).toBeLessThanOrEqual(latest);
    await later(database, 25);
    expect((await of(BO)).window.isOpen).toBe(false);

    await takeIn(database, usual(ASHA, 'wamid.a2'));
    expect(await ids()).toEqual([ASHA, BO]);
    await takeIn(database, usual(BO, 'wamid.b2'));
    expect(await ids()).toEqual([BO, ASHA]);
    const { window, messages } = await of(BO);
    expect([window.isOpen, Date.parse(window.expiresAt) <= Date.now() + DAY_MS]).toEqual([true, true]);
    expect(messages.map(({ metaMessageId }: { metaMessageId: string }) => metaMessageId)).toEqual([
      'wamid.odd',
      'wamid.b2',
    ]);
  });

  test('as a reaction gives way to the next one', async () => {
    const { database, of } = await world();
    const reaction = (id: string, emoji: string, at: unknown) =>
      bodyWith('messages', BO, {
        id,
        timestamp: at,
        type: 'reaction',
        text: undefined,
        reaction: { message_id: 'wamid.b1', emoji },
      });
    await takeIn(database, usual(BO, 'wamid.b1'), reaction('wamid.r1', '👍', timestamp));
    await later(database, 1);
    await takeIn(database, reaction('wamid.r2', '😮', String(nowSeconds())));
    const [first] = (await of(BO)).messages;
    expect(first.reactions.map(({ emoji }: { emoji: string }) => emoji)).toEqual(['😮']);
  });

  test('says nothing for ever of who has the conversation', async () => {
    const { database, of } = await world();
    const copy = (id: string, at: unknown) => bodyWith('standby', BO, { id, timestamp: at });
    await takeIn(
      database,
      bodyWith('messages', BO, { id: 'wamid.odd', timestamp }),
      copy('wamid.odd-copy', timestamp),
    );
    const { id } = await of(BO);
    await later(database, 1);
    await takeIn(database, copy('wamid.copy', String(nowSeconds())));
    expect((await findThread(database, WABA, id))?.owner).toBe('other');
    await later(database, 1);
    await takeIn(database, usual(BO, 'wamid.b2'));
    expect((await findThread(database, WABA, id))?.owner).toBe('us');
    await later(database, 48);
    expect(await findThread(database, WABA, id)).toBe(null);
  });
});
