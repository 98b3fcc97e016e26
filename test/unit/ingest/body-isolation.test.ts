import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import {
  splitUpstreamBody,
  UnreadableBody,
  type UpstreamItem,
} from '../../../src/ingest/split/upstream-items.ts';
import { parseJson } from '../../../src/platform/json/json-text.ts';
import { anyText, codePoint } from '../../support/any-text.ts';
import { bodyText, CONTACTS, METADATA, splitText } from './support/upstream-body.ts';

// Generous, because the machine may be busy with other tests.
vi.setConfig({ testTimeout: 60_000 });

const SOUND_MESSAGE =
  '{"from":"12025550143","id":"wamid.SOUND","timestamp":"1790000000","type":"text","text":{"body":"hi"}}';
const SOUND_STATUS =
  '{"id":"wamid.OUT","status":"sent","timestamp":"1790000000","recipient_id":"12025550143"}';

const json = fc.jsonValue({ maxDepth: 4, stringUnit: codePoint }).map((value) => JSON.stringify(value));
const memberNames = [
  ...[
    'id',
    'type',
    'from',
    'from_user_id',
    'timestamp',
    'context',
    'group_id',
    'image',
    'video',
    'system',
    'order',
  ],
  ...[
    'edit',
    'reaction',
    'text',
    'status',
    'payment',
    'errors',
    'recipient_id',
    'recipient_participant_id',
    'message',
  ],
  ...[
    'url',
    'mime_type',
    'reference_id',
    'transaction',
    'amount',
    'value',
    'offset',
    'refunds',
    'profile',
    'wa_id',
  ],
];
const typeNames = [
  'text',
  'image',
  'edit',
  'system',
  'order',
  'reaction',
  'revoke',
  'payment',
  'unknown',
  'user_changed_number',
];
/** Objects that look like upstream's, with anything anywhere, repeated names included. */
const lookalike = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(
      json,
      fc.constantFrom(...typeNames.map((type) => `"${type}"`)),
      fc.constantFrom('1e400', '-0', '"\\u0000\\ud800"'),
    ),
    tie('object'),
    fc.array(tie('value'), { maxLength: 3 }).map((values) => `[${values.join(',')}]`),
  ),
  object: fc
    .array(fc.tuple(fc.constantFrom(...memberNames), tie('value')), { maxLength: 8 })
    .map((pairs) => `{${pairs.map(([name, value]) => `"${name}":${value}`).join(',')}}`),
}));
const garbage = fc.oneof(
  json,
  lookalike.object,
  lookalike.value,
  fc.constant(`${'['.repeat(200)}${']'.repeat(200)}`),
);

function soundItemsOf(items: readonly UpstreamItem[]): string[] {
  return items.map((item) => item.eventData);
}

describe('garbage in a body', () => {
  const soundMessageData = `{"metadata":${METADATA},"contacts":${CONTACTS},"message":${SOUND_MESSAGE}}`;
  const soundStatus = `"status":${SOUND_STATUS}}`;

  test('among the items never harms its siblings, and each part becomes an item or is quarantined', () => {
    fc.assert(
      fc.property(
        fc.array(garbage, { maxLength: 3 }),
        fc.array(garbage, { maxLength: 3 }),
        (before, after) => {
          const messages = [...before, SOUND_MESSAGE, ...after].join(',');
          const statuses = [...after, SOUND_STATUS, ...before].join(',');
          const split = splitText(
            bodyText(`"contacts":${CONTACTS},"messages":[${messages}],"statuses":[${statuses}]`),
          );
          expect(soundItemsOf(split.items)).toContain(soundMessageData);
          expect(soundItemsOf(split.items).some((data) => data.endsWith(soundStatus))).toBe(true);
          expect(split.items.length + split.quarantined.length).toBe(2 * (before.length + after.length + 1));
          for (const item of split.items) {
            expect(() => parseJson(item.eventData)).not.toThrow();
            const ids = [item.eventId, item.laneKey, item.wabaId, item.phoneNumberId];
            for (const id of ids) expect(id?.isWellFormed() && !id?.includes('\0')).toBe(true);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test('in place of any part of a change or entry never harms the other changes and entries', () => {
    const place = fc.constantFrom(
      'entry',
      'changes',
      'change',
      'value',
      'metadata',
      'contacts',
      'messages',
      'statuses',
      'id',
    );
    fc.assert(
      fc.property(place, garbage, (name, json) => {
        const at = (part: string, normal: string) => (part === name ? json : normal);
        const value = `{"metadata":${at('metadata', METADATA)},"contacts":${at('contacts', CONTACTS)},"messages":${at('messages', '[]')},"statuses":${at('statuses', '[]')}}`;
        const change = at('change', `{"field":"messages","value":${at('value', value)}}`);
        const entry = at('entry', `{"id":${at('id', '"1"')},"changes":${at('changes', `[${change}]`)}}`);
        const sound = `{"field":"messages","value":{"metadata":${METADATA},"contacts":${CONTACTS},"messages":[${SOUND_MESSAGE}]}}`;
        const split = splitText(
          `{"entry":[${entry},{"id":"900000000000101","changes":[${change},${sound},${change}]},${entry}]}`,
        );
        expect(soundItemsOf(split.items)).toContain(soundMessageData);
      }),
      { numRuns: 500 },
    );
  });

  test('as the whole body is an UnreadableBody and nothing else', () => {
    fc.assert(
      fc.property(fc.oneof(anyText(), garbage), (text) => {
        try {
          const split = splitText(text);
          expect(split.items).toEqual([]);
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableBody);
        }
      }),
    );
  });
});

describe('bodies that cannot be read', () => {
  test.each([
    ['', 'not_json'],
    ['{"entry":[]', 'not_json'],
    ['{"entry":["\u0000"]}', 'not_json'],
    ['[]', 'not_an_object'],
    ['null', 'not_an_object'],
    ['{}', 'no_entry_array'],
    ['{"entry":{}}', 'no_entry_array'],
  ])('%j: %s', (text, reason) => {
    expect(() => splitText(text)).toThrow(expect.objectContaining({ name: 'UnreadableBody', reason }));
  });
});

describe('parts that are quarantined', () => {
  const reasonOf = (members: string, metadata = METADATA) => {
    const split = splitText(bodyText(members, metadata));
    expect(split.items).toEqual([]);
    return split.quarantined.map((part) => [part.path.replace('entry[0].changes[0].value', ''), part.reason]);
  };
  const deep = `${'['.repeat(100)}${']'.repeat(100)}`;

  test.each<[string, string, [string, string]]>([
    ['a message without id', '"messages":[{"type":"text"}]', ['.messages[0]', 'missing_id']],
    ['a message with an id of the wrong kind', '"messages":[{"id":{}}]', ['.messages[0]', 'missing_id']],
    [
      'a message with an oversized id',
      `"messages":[{"id":"${'x'.repeat(513)}"}]`,
      ['.messages[0]', 'unreadable_item'],
    ],
    [
      'a message from an oversized sender',
      `"messages":[{"id":"w","from":"${'1'.repeat(513)}"}]`,
      ['.messages[0]', 'unreadable_item'],
    ],
    ['a message that is no object', '"messages":["w"]', ['.messages[0]', 'unreadable_item']],
    ['a message nested too deep', `"messages":[{"id":"w","x":${deep}}]`, ['.messages[0]', 'too_deep']],
    ['messages that are no array', '"messages":{"id":"w"}', ['.messages', 'unreadable_item']],
    ['a status without id', '"statuses":[{"status":"sent"}]', ['.statuses[0]', 'missing_id']],
    ['a status without status', '"statuses":[{"id":"w"}]', ['.statuses[0]', 'missing_status']],
  ])('%s', (_name, members, expected) => {
    expect(reasonOf(members)).toEqual([expected]);
  });

  test.each([
    ['too_deep', deep],
    ['oversized_metadata', `"${'x'.repeat(20_000)}"`],
  ])('items under metadata that is %s', (reason, odd) => {
    const metadata = `{"phone_number_id":"8","x":${odd}}`;
    expect(reasonOf('"messages":[{"id":"w"}]', metadata)).toEqual([['.messages[0]', reason]]);
  });

  test.each(['null', '{}', '"x"', '{"phone_number_id":""}', '{"phone_number_id":null}'])(
    'items under metadata %s',
    (metadata) => {
      expect(reasonOf('"messages":[{"id":"w"}],"statuses":[{"id":"w","status":"sent"}]', metadata)).toEqual([
        ['.messages[0]', 'missing_metadata'],
        ['.statuses[0]', 'missing_metadata'],
      ]);
    },
  );

  test('items of an entry without an id, and entries and changes of the wrong kind', () => {
    const value = `{"metadata":${METADATA},"messages":[{"id":"w"}]}`;
    const split = splitText(
      `{"entry":[null,{"id":"1"},{"changes":[5,{"field":"messages","value":${value}},{"field":"messages"}]}]}`,
    );
    expect(split.quarantined.map((part) => [part.path, part.reason])).toEqual([
      ['entry[0]', 'unreadable_item'],
      ['entry[1]', 'unreadable_item'],
      ['entry[2].changes[0]', 'unreadable_item'],
      ['entry[2].changes[1].value.messages[0]', 'missing_waba_id'],
      ['entry[2].changes[2].value', 'unreadable_item'],
    ]);
  });
});

describe('members of a value beside its items', () => {
  const deep = `${'['.repeat(100)}${']'.repeat(100)}`;
  const items = '"messages":[{"id":"w"}],"statuses":[{"id":"w","status":"sent"}]';
  const eventsOf = (members: string) =>
    splitText(bodyText(members)).items.map(({ kind, eventData }) => [kind, eventData] as const);

  test('go with each of the items, as they are written', () => {
    const others = '"errors":[{"code": 1.0}],"\\u0061":"\\u00e9"';
    const split = splitText(bodyText(`"errors":[{"code": 1.0}],${items},"\\u0061":"\\u00e9"`));
    expect(split.quarantined).toEqual([]);
    expect(split.items.map(({ kind }) => kind)).toEqual(['message', 'status']);
    for (const { eventData } of split.items) expect(eventData.endsWith(`,"value":{${others}}}`)).toBe(true);
  });

  test('are absent where there are none', () => {
    for (const [, data] of eventsOf(items)) expect(data).not.toContain('"value"');
  });

  test.each([
    ['no items', '"contacts":[]'],
    ['empty lists', '"messages":[],"statuses":null,"errors":[]'],
    ['errors', '"errors":[{"code":0}]'],
    ['echoes', '"message_echoes":[{"id":"w"}]'],
    ['actions', '"user_actions":[{"action_type":"x"}]'],
  ])('of a value with %s are one event of the field, with the whole value', (_name, members) => {
    const value = `{"messaging_product":"whatsapp","metadata":${METADATA},${members}}`;
    expect(eventsOf(members)).toEqual([['upstream', `{"field":"messages","value":${value}}`]]);
  });

  test('that are too much to be repeated with each item are an event of the field once', () => {
    for (const odd of [`"${'x'.repeat(20_000)}"`, `{"a":${deep.slice(0, 58)}${deep.slice(-58)}}`]) {
      const events = eventsOf(`${items},"big":${odd}`);
      expect(events.map(([kind]) => kind)).toEqual(['message', 'status', 'upstream']);
      expect(events.filter(([, data]) => data.includes(odd)).map(([kind]) => kind)).toEqual(['upstream']);
      expect(events[2]?.[1]).not.toContain('"messages":[');
    }
  });

  test('are an event although every item beside them is quarantined', () => {
    const split = splitText(bodyText('"messages":[{}],"user_actions":[{"action_type":"x"}]'));
    expect(split.items.map(({ kind }) => kind)).toEqual(['upstream']);
    expect(split.quarantined.map(({ reason }) => reason)).toEqual(['missing_id']);
  });

  test('that are nested too deep are quarantined, and the items arrive', () => {
    const split = splitText(bodyText(`${items},"deep":${deep}`));
    expect(split.items.map(({ kind }) => kind)).toEqual(['message', 'status']);
    expect(split.quarantined.map(({ reason }) => reason)).toEqual(['too_deep']);
  });

  test('stay away where the items were erased', () => {
    const split = splitText(bodyText('"messages":[{"heliograph_erased":true}]'));
    expect(split).toEqual({ items: [], quarantined: [] });
  });
});

describe('contacts that cannot be passed on', () => {
  const deep = `${'['.repeat(100)}${']'.repeat(100)}`;

  test.each([
    ['nested too deep', `{"wa_id":"1","x":${deep}}`],
    ['oversized', `{"wa_id":"1","x":"${'x'.repeat(20_000)}"}`],
  ])('because they are %s are left out of the event, and the message arrives', (_name, odd) => {
    const contacts = `[${odd},{"wa_id":"1","profile":{"name":"One"}}]`;
    const split = splitText(bodyText(`"contacts":${contacts},"messages":[{"id":"w","from":"1"}]`));
    expect(split.quarantined).toEqual([]);
    expect(split.items[0]?.eventData).toContain('"contacts":[{"wa_id":"1","profile":{"name":"One"}}],');
  });

  test('because of an oversized id do not harm the message either', () => {
    const contacts = `[{"user_id":"U","wa_id":"${'1'.repeat(600)}"}]`;
    const split = splitText(bodyText(`"contacts":${contacts},"messages":[{"id":"w","from_user_id":"U"}]`));
    expect(split.items[0]).toMatchObject({ kind: 'message', sender: { waId: null, userId: 'U' } });
  });
});

describe('a 3 MiB body made to multiply work', () => {
  const list = (count: number, write: (position: number) => string) =>
    Array.from({ length: count }, (_, i) => write(i)).join(',');
  const changes = (count: number, change: string) =>
    `{"entry":[{${list(100_000, () => '"k":0')},"id":"1","changes":[${list(count, () => change)}]}]}`;

  test.each([
    [
      'masses of contacts of one sender',
      bodyText(
        `"contacts":[${list(60_000, () => '{"wa_id":"1"}')}],"messages":[${list(40_000, (i) => `{"from":"1","id":"w${i}"}`)}]`,
      ),
    ],
    [
      'bulky metadata and many messages',
      bodyText(
        `"messages":[${list(60_000, (i) => `{"id":"w${i}"}`)}]`,
        `{"phone_number_id":"8","x":"${'x'.repeat(16_000)}"}`,
      ),
    ],
    [
      'masses of members beside broken messages',
      bodyText(`${list(100_000, () => '"k":0')},"messages":[${list(50_000, () => '{}')}]`),
    ],
    ['masses of members beside many changes', changes(100_000, '{"field":"x","value":{}}')],
  ])('%s is split in seconds and not in minutes', (_name, text) => {
    const body = Buffer.from(text);
    const before = process.threadCpuUsage();
    splitUpstreamBody(body);
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(10_000);
  });
});
