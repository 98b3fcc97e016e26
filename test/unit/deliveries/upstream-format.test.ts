import { describe, expect, test } from 'vitest';
import { serializeEvent, testEventData } from '../../../src/engine/deliveries/envelope.ts';
import { upstreamBody } from '../../../src/engine/deliveries/upstream-format.ts';
import { formatTakes } from '../../../src/engine/endpoint/event-format.ts';
import { splitUpstreamBody } from '../../../src/ingest/split/upstream-items.ts';
import { type EventType, upstreamTypeOf } from '../../../src/platform/event-type.ts';
import { fixtureBody, fixtureNames } from '../../support/upstream-fixtures.ts';

type EventIds = { wabaId: string; phoneNumberId: string | null; eventId: string };

const eventOf = (
  type: string,
  dataJson: string,
  ids: EventIds = { wabaId: '9', phoneNumberId: '8', eventId: 'e' },
) =>
  Buffer.from(
    serializeEvent({
      eventType: type as EventType,
      userId: '1',
      ...ids,
      dataJson,
      occurredAt: new Date('2026-11-21T09:30:00.210Z'),
    }),
  );

const fixtureItems = () =>
  fixtureNames().flatMap((name) => {
    try {
      return splitUpstreamBody(fixtureBody(name)).items.map((item) => ({ name, item }));
    } catch {
      return [];
    }
  });

describe('the body of an endpoint with the format meta', () => {
  test('of every item of the fixtures, is read by upstream’s rules as that one item, unchanged', () => {
    const all = fixtureItems();
    expect(all.length).toBeGreaterThan(100);
    for (const { name, item } of all) {
      const type = item.kind === 'upstream' ? upstreamTypeOf(item.field) : item.kind;
      const body = upstreamBody(eventOf(type, item.eventData, item));
      const again = splitUpstreamBody(body);
      expect(again.quarantined, name).toEqual([]);
      const [read] = again.items;
      expect(again.items, name).toHaveLength(1);
      expect(JSON.parse(read?.eventData ?? ''), name).toEqual(JSON.parse(item.eventData));
      // The identity of a change in another field holds the time of its entry, which is not part of the event.
      const same = ['kind', 'wabaId', 'phoneNumberId', 'eventId'] as const;
      for (const member of item.kind === 'upstream' ? same : ([...same, 'dedupKey'] as const)) {
        expect(read?.[member], `${name}: ${member}`).toBe(item[member]);
      }
    }
  });

  test('has the members of upstream’s envelope, and no contacts where upstream named none', () => {
    const data = '{"metadata":{"phone_number_id":"8"},"contacts":[],"message":{"id":"wamid.1","n":1.0}}';
    expect(upstreamBody(eventOf('message', data)).toString()).toBe(
      '{"object":"whatsapp_business_account","entry":[{"id":"9","changes":[{"value":{"messaging_product":"whatsapp",' +
        '"metadata":{"phone_number_id":"8"},"messages":[{"id":"wamid.1","n":1.0}]},"field":"messages"}]}]}',
    );
  });

  test('has only ASCII, so that receivers who escape it before they check the signature find it right', () => {
    const data = '{"metadata":{},"contacts":[],"message":{"text":{"body":"grüße 👋"}}}';
    const body = upstreamBody(eventOf('message', data)).toString();
    expect(body).toContain('gr\\u00fc\\u00dfe \\ud83d\\udc4b');
    expect(JSON.parse(body).entry[0].changes[0].value.messages[0].text.body).toBe('grüße 👋');
  });

  test('of an opted-in field, is upstream’s value as it came', () => {
    const data = '{"field":"account_update","value":{"event":"X","big":12345678901234567890},"wabaId":"9"}';
    expect(JSON.parse(upstreamBody(eventOf('upstream.account_update', data)).toString())).toMatchObject({
      entry: [{ id: '9', time: 1795253400, changes: [{ field: 'account_update', value: { event: 'X' } }] }],
    });
    expect(upstreamBody(eventOf('upstream.account_update', data)).toString()).toContain(
      '12345678901234567890',
    );
  });

  test('of a test event, is the test of upstream’s dashboard, which names a number of no account', () => {
    const [entry] = JSON.parse(upstreamBody(eventOf('test', testEventData('Shop'))).toString()).entry;
    expect(entry.id).toBe('0');
    expect(entry.changes[0].value).toMatchObject({
      metadata: { phone_number_id: '123456123' },
      messages: [{ id: 'e', timestamp: '1795253400', type: 'text' }],
    });
  });

  test('of what has no such form, is a field that receivers pass over', () => {
    const body = JSON.parse(upstreamBody(eventOf('media.ready', '{"mediaType":"image"}')).toString());
    expect(body.entry[0].changes[0]).toMatchObject({
      field: 'heliograph.media.ready',
      value: { eventType: 'media.ready', data: { mediaType: 'image' } },
    });
  });
});

test('endpoints with the format meta receive what has a form of upstream’s, the others everything', () => {
  const types = ['message', 'status', 'payment', 'order', 'media.ready', 'test', 'upstream.calls'];
  expect(types.filter((type) => formatTakes('heliograph', type))).toEqual(types);
  expect(types.filter((type) => !formatTakes('meta', type))).toEqual(['order', 'media.ready']);
});
