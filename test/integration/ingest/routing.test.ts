import { describe, expect, test } from 'vitest';
import { findThread } from '../../../src/features/messages/conversations/thread.ts';
import { lookForConditions } from '../../../src/ops/alerts/conditions.ts';
import { eraseCustomer } from '../../../src/ops/erasures/erasures.ts';
import { execute, query, queryColumn } from '../../../src/platform/postgres/sql.ts';
import { tablesHolding } from '../../support/database-scan.ts';
import { orders } from '../../support/orders.ts';
import { storedEvents, takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { NUMBER, OTHER_WABA, startTestApi, WABA } from '../api/api-harness.ts';
import { client } from '../deliveries/event-fixtures.ts';
import { startErasureWorld } from '../erasures/erasure-world.ts';
import { ASHA, fill } from '../erasures/filled-world.ts';

const CUSTOMER = '12025550143';
const USER = 'US.10000000000000000143';

/** The world is a minute old, so that nothing is idle. */
const START = Math.floor(Date.now() / 1_000) - 60;
const second = (n: number) => String(START + n);

function body(field: string, value: object, wabaId = WABA): Buffer {
  const change = { field, value: { messaging_product: 'whatsapp', ...value } };
  return Buffer.from(JSON.stringify({ entry: [{ id: wabaId, changes: [change] }] }));
}

const metadata = { display_phone_number: '12025550100', phone_number_id: NUMBER };

const message = (id: string, n: number, content: object = {}) => ({
  from: CUSTOMER,
  id,
  timestamp: second(n),
  type: 'text',
  text: { body: `Text of ${id}` },
  ...content,
});

const contacts = [{ profile: { name: 'Asha Tester' }, wa_id: CUSTOMER, user_id: USER }];

const own = (id: string, n: number, content: object = {}) =>
  body('messages', { metadata, contacts, messages: [message(id, n, content)] });

const standby = (lists: object, wabaId = WABA) => body('standby', { metadata, standby: lists }, wabaId);

const copy = (id: string, n: number, content: object = {}) =>
  standby({ contacts, messages: [message(id, n, content)] });

const echo = (id: string, n: number, to: object = { to: CUSTOMER }) =>
  standby({
    message_echoes: [
      { id, timestamp: second(n), message: { ...to, type: 'text', text: { body: `Text of ${id}` } } },
    ],
  });

const copiedStatus = (id: string, status: string, n: number) =>
  standby({ statuses: [{ id, status, timestamp: second(n), recipient_id: CUSTOMER }] });

const handover = (type: string, n: number, sender: object = { sender: { phone_number: CUSTOMER } }) =>
  body('messaging_handovers', {
    ...sender,
    recipient: metadata,
    type,
    timestamp: second(n),
    [type]: { previous_owner_role: 'ai_agent', new_owner_role: 'escalation' },
  });

async function world() {
  const api = await startTestApi();
  const { call } = await client(api);
  const conversations = async () => (await call('GET', '/api/external/conversations')).json().data;
  const detail = async () => {
    const [{ id }] = await conversations();
    return (await call('GET', `/api/external/conversations/${id}`)).json();
  };
  const messages = async () => {
    const [{ id }] = await conversations();
    return (await call('GET', `/api/external/conversations/${id}/messages?order=asc`)).json().data;
  };
  return { ...api, call, conversations, detail, messages };
}

type Shown = Record<string, unknown>;

const shown = (list: Shown[]) =>
  list.map((m) => [m.metaMessageId, m.direction, m.origin, m.status, m.supersededBy !== undefined]);

describe('copies of what another responder has', () => {
  test('are messages of the conversation, and no message event, whatever comes first', async () => {
    for (const [first, ...rest] of orders(['in', 'echo', 'status'] as const)) {
      const { database, messages, detail } = await world();
      await addEndpoint(database, WABA, 'https://plain.example/hook');
      const bodies = {
        in: copy('wamid.in', 1),
        echo: echo('wamid.out', 2),
        status: copiedStatus('wamid.out', 'delivered', 3),
      };
      for (const name of [first, ...rest]) if (name !== undefined) await takeIn(database, bodies[name]);
      expect(shown(await messages()).sort()).toEqual([
        ['wamid.in', 'inbound', 'other_responder', null, false],
        ['wamid.out', 'outbound', 'other_responder', 'delivered', false],
      ]);
      expect(await detail()).toMatchObject({
        customer: { waId: CUSTOMER, userId: USER, name: 'Asha Tester' },
        customerServiceWindow: { isOpen: true },
        thread: { owner: 'other', role: null },
      });
      expect(new Set((await storedEvents(database)).map(({ type }) => type))).toEqual(
        new Set(['upstream.standby']),
      );
      expect(await query(database, 'select event_uuid from delivery_queue')).toEqual([]);
      expect(await query(database, 'select status from message_statuses')).toEqual([]);
    }
  });

  test('give way to the same message that is ours, in whatever order they come, one by one and together', async () => {
    const image = { type: 'image', image: { id: '600000000000001', mime_type: 'image/jpeg' } };
    for (const content of [{}, image])
      for (const together of [false, true])
        for (const order of orders(['own', 'copy', 'copy again'] as const)) {
          const { database, messages, detail } = await world();
          const bodies = order.map((name) =>
            name === 'own' ? own('wamid.x', 1, content) : copy('wamid.x', 1, content),
          );
          if (together) await takeIn(database, ...bodies);
          else for (const one of bodies) await takeIn(database, one);
          const list: Shown[] = await messages();
          const kept = list.filter(({ supersededBy }) => supersededBy === undefined);
          expect(shown(kept)).toEqual([['wamid.x', 'inbound', undefined, null, false]]);
          expect(list.length).toBeLessThanOrEqual(2);
          for (const one of list)
            expect(one.supersededBy ?? kept[0]?.serviceMessageId).toBe(kept[0]?.serviceMessageId);
          expect((await detail()).thread).toBe(null);
          const types = (await storedEvents(database)).map(({ type }) => type);
          expect(types.filter((type) => type === 'message')).toHaveLength(1);
        }
  });

  test('have their files fetched, which gives no media.ready', async () => {
    const { database, messages } = await world();
    const image = {
      type: 'image',
      image: { id: '600000000000001', mime_type: 'image/jpeg', url: 'https://secret.example/' },
    };
    await takeIn(database, copy('wamid.pic', 1, image));
    const [picture] = await messages();
    expect(picture).toMatchObject({ origin: 'other_responder', mediaPending: true });
    expect(JSON.stringify(picture)).not.toContain('secret');
    const tasks = await query(
      database,
      `select workflow_type as type from workflow_tasks where workflow_type = 'storeInboundMedia'`,
    );
    expect(tasks).toHaveLength(1);
  });

  test('move the conversation to the top; handovers and calls do not, and a call is no sign of who has it', async () => {
    const { database, conversations } = await world();
    const OTHER = '12025550144';
    const call = { id: 'wacid.1', to: metadata.display_phone_number, event: 'connect', timestamp: second(6) };
    const ring = (from: string) =>
      body('calls', { metadata, calls: [{ ...call, from, direction: 'USER_INITIATED' }] });
    await takeIn(database, own('wamid.1', 1));
    await takeIn(
      database,
      body('messages', { metadata, messages: [message('wamid.2', 2, { from: OTHER })] }),
    );
    const phones = async () =>
      (await conversations()).map(({ customer }: { customer: { waId: string } }) => customer.waId);
    expect(await phones()).toEqual([OTHER, CUSTOMER]);
    await takeIn(database, copy('wamid.3', 3));
    expect(await phones()).toEqual([CUSTOMER, OTHER]);
    await takeIn(database, handover('control_taken', 4, { sender: { phone_number: OTHER } }), ring(OTHER));
    expect(await phones()).toEqual([CUSTOMER, OTHER]);
    await takeIn(database, ring(CUSTOMER));
    const ids = await queryColumn<string>(database, 'select id from conversations order by id');
    const threads = await Promise.all(ids.map((id) => findThread(database, WABA, id)));
    expect(threads.map((thread) => thread?.owner)).toEqual(['other', 'other']);
  });

  test('say nothing of a message of ours', async () => {
    const { database, messages } = await world();
    await takeIn(database, own('wamid.mine', 1), copiedStatus('wamid.mine', 'read', 2));
    expect(shown(await messages())).toEqual([['wamid.mine', 'inbound', undefined, null, false]]);
  });

  test('harm nothing when they are unlike any message, empty, of a group or of another WABA', async () => {
    const { database, conversations } = await world();
    const odd = [
      null,
      7,
      [],
      {},
      { id: 'x'.repeat(9_000) },
      { id: 'a', message: 7 },
      { id: 'b', message: {} },
    ];
    await takeIn(
      database,
      ...[{}, { messages: 'none' }, { messages: odd, message_echoes: odd, statuses: odd }].map((lists) =>
        standby(lists),
      ),
      standby({ messages: [message('wamid.g', 1, { group_id: 'G' })] }),
      standby({
        message_echoes: [{ id: 'wamid.ge', message: { to: 'G', recipient_type: 'group', type: 'text' } }],
      }),
      standby({ messages: [message('wamid.foreign', 1)] }, OTHER_WABA),
      body('standby', { metadata, standby: null }),
      body('messaging_handovers', { recipient: 7, sender: [], type: {} }),
    );
    expect(await conversations()).toEqual([]);
    expect(await query(database, 'select distinct state from inbox')).toEqual([{ state: 'done' }]);
  });

  test('go with the customer who is erased, and do not come back', async () => {
    const built = await startErasureWorld();
    await fill(built);
    const texts = [
      standby({
        contacts: [{ wa_id: ASHA.waId, user_id: ASHA.userId }],
        messages: [message('wamid.asha1', 1, { from: ASHA.waId })],
      }),
      echo('wamid.asha2', 2, { to: ASHA.waId }),
      echo('wamid.asha3', 2, { recipient: ASHA.userId }),
      handover('control_taken', 3, { sender: { phone_number: ASHA.waId } }),
      echo('wamid.other', 4),
    ];
    await takeIn(built.database, ...texts);
    const { erasureId } = await eraseCustomer(built.tools, WABA, { phone: ASHA.waId });
    await built.erase(erasureId);
    expect(await tablesHolding(built.database, [ASHA.waId, ASHA.userId, 'wamid.asha'])).toEqual([]);
    await takeIn(built.database, ...texts.slice(0, 3));
    const left = await query(
      built.database,
      'select upstream_id as id from messages where origin is not null',
    );
    expect(left).toEqual([{ id: 'wamid.other' }]);
  });
});

describe('handovers', () => {
  test('say who has the conversation, in whatever order they and the messages come', async () => {
    const bodies = {
      own: own('wamid.1', 1),
      taken: handover('control_taken', 2),
      copy: copy('wamid.3', 3),
      passed: handover('control_passed', 4),
    };
    for (const names of orders(Object.keys(bodies) as (keyof typeof bodies)[])) {
      const { database, detail } = await world();
      for (const name of names) await takeIn(database, bodies[name]);
      expect([names, (await detail()).thread]).toEqual([
        names,
        { owner: 'us', role: 'escalation', since: new Date((START + 4) * 1_000).toISOString() },
      ]);
    }
  });

  test.each(orders(['control_taken', 'control_passed']))(
    'of one second are not guessed: %s, %s',
    async (...types) => {
      const { database, detail } = await world();
      for (const type of types) await takeIn(database, handover(type, 1));
      expect((await detail()).thread).toMatchObject({ owner: 'unknown', role: null });
    },
  );

  test('without a sender change nothing, older forms are read, unknown ones are not guessed', async () => {
    const { database, detail } = await world();
    await takeIn(database, own('wamid.1', 1), fixtureBody('fld_messaging_handovers_control_taken_no_sender'));
    expect((await detail()).thread).toBe(null);
    const older = { sender: { phone_number: CUSTOMER }, recipient: metadata, timestamp: second(2) };
    await takeIn(database, body('messaging_handovers', { ...older, control_taken: { metadata: 'x' } }));
    expect((await detail()).thread).toMatchObject({ owner: 'other', role: null });
    await takeIn(
      database,
      body('messaging_handovers', { ...older, timestamp: second(3), type: 'control_lent' }),
    );
    expect((await detail()).thread).toMatchObject({ owner: 'unknown' });
  });
});

describe('a number that another responder joins', () => {
  test('is an alert where customers wrote to us before, and none otherwise', async () => {
    const { database } = await world();
    const shared = async () =>
      (await lookForConditions(database, new Date())).flatMap((looked) =>
        'conditions' in looked && looked.kind === 'number_shared' ? looked.conditions : [],
      );
    await takeIn(database, copy('wamid.1', 1));
    expect(await shared()).toEqual([]);
    await takeIn(database, own('wamid.2', 2));
    expect(await shared()).toMatchObject([{ wabaId: WABA, subject: NUMBER }]);
    await execute(database, `update upstream_troubles set until = now() - interval '1 minute'`);
    expect(await shared()).toEqual([]);
  });
});
