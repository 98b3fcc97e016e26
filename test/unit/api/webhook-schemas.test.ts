import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import { EVENT_BODIES, UPSTREAM_EVENT_BODY } from '../../../src/api/openapi/webhooks/event-body-schemas.ts';
import { upstreamExample } from '../../../src/api/openapi/webhooks/upstream-examples.ts';
import { WEBHOOK_EXAMPLES } from '../../../src/api/openapi/webhooks/webhook-examples.ts';
import { webhookOperations } from '../../../src/api/openapi/webhooks/webhook-operations.ts';
import { serializeEvent } from '../../../src/engine/deliveries/envelope.ts';
import { webhookHeaders } from '../../../src/engine/deliveries/webhook-request.ts';
import { orderEventData, orderService } from '../../../src/features/messages/orders/orders.ts';
import type { UpstreamItem } from '../../../src/ingest/split/upstream-items.ts';
import { EVENT_TYPES, type EventType, upstreamTypeOf } from '../../../src/platform/event-type.ts';
import { KNOWN_FIELDS } from '../../../src/platform/upstream-fields.ts';
import { exampleEvents } from '../deployment/example-events.ts';
import { fixtureNames, splitFixture } from '../ingest/support/upstream-body.ts';

function envelope(item: UpstreamItem, eventType: EventType, dataJson: string): unknown {
  const { wabaId, phoneNumberId, eventId } = item;
  const members = { eventType, userId: 1, wabaId, phoneNumberId, eventId, dataJson };
  return JSON.parse(serializeEvent({ ...members, occurredAt: new Date() }));
}

function typeOf(item: UpstreamItem): EventType {
  return item.kind === 'upstream' ? upstreamTypeOf(item.field) : item.kind;
}

function schemaOf(type: EventType) {
  const core = EVENT_TYPES.find((known) => known === type);
  return core === undefined ? UPSTREAM_EVENT_BODY : EVENT_BODIES[core];
}

type Described = { description?: string; properties?: Record<string, Described>; items?: Described };

/** The members without a meaning, at any depth. */
function undescribed({ properties = {}, items }: Described, path = ''): string[] {
  const own = Object.entries(properties).flatMap(([name, member]) => [
    ...(member.description === undefined || member.description.length < 3 ? [`${path}${name}`] : []),
    ...undescribed(member, `${path}${name}.`),
  ]);
  return items === undefined ? own : [...own, ...undescribed(items, path)];
}

/** The events that an upstream item becomes, as the service writes them. */
function eventsOf(item: UpstreamItem): { type: EventType; body: unknown }[] {
  const events: { type: EventType; body: unknown }[] = [
    { type: typeOf(item), body: envelope(item, typeOf(item), item.eventData) },
  ];
  if (item.kind === 'message' && item.order !== null && item.orderEventParts !== null) {
    const input = { orderId: 17, items: item.order.items, products: new Map() };
    const service = orderService({ ...input, placeholderImageUrl: 'https://gateway.example/a.png' });
    const data = orderEventData(item.orderEventParts, service);
    events.push({ type: 'order', body: envelope(item, 'order', data) });
  }
  return events;
}

const events = fixtureNames().flatMap((name) =>
  splitFixture(name).items.flatMap((item) => eventsOf(item).map((event) => ({ name, ...event }))),
);

describe('the schemas of webhooks', () => {
  test('take every event that the service makes of what upstream sends', () => {
    expect(events.length).toBeGreaterThan(60);
    expect(new Set(events.map(({ type }) => type))).toEqual(
      new Set([
        ...['message', 'status', 'payment', 'order'],
        ...['upstream.account_settings_update', 'upstream.account_update', 'upstream.automatic_events'],
        ...['upstream.calls', 'upstream.messages', 'upstream.messaging_handovers', 'upstream.standby'],
        ...['upstream.group_lifecycle_update', 'upstream.group_participants_update'],
        ...['upstream.group_settings_update', 'upstream.smb_message_echoes', 'upstream.user_preferences'],
        'upstream.user_id_update',
        ...['upstream.message_template_status_update', 'upstream.payment_configuration_update'],
        ...['upstream.template_category_update', 'upstream.template_correct_category_detection'],
        'upstream.phone_number_quality_update',
      ]),
    );
    for (const { name, type, body } of events) {
      expect([name, [...Compile(schemaOf(type)).Errors(body)]]).toEqual([name, []]);
    }
  });

  test.each(KNOWN_FIELDS)(
    'show upstream.%s as the service makes it, with the number that the value names',
    (field) => {
      const example = upstreamExample(field) as {
        eventId: string;
        phoneNumberId: string | null;
        data: unknown;
      };
      expect([...Compile(UPSTREAM_EVENT_BODY).Errors(example)]).toEqual([]);
      type Place = { phone_number_id: string };
      const { value } = example.data as {
        value: { metadata?: Place; recipient?: Place; phone_number_settings?: Place };
      };
      const place = value.metadata ?? value.recipient ?? value.phone_number_settings;
      expect(example.phoneNumberId).toBe(place?.phone_number_id ?? null);
      expect(EVENT_TYPES.filter((type) => Compile(EVENT_BODIES[type]).Check(example))).toEqual([]);
    },
  );

  test.each(EVENT_TYPES)('show a %s as the service makes it', (type) => {
    expect(WEBHOOK_EXAMPLES[type]).toEqual(JSON.parse(exampleEvents()[type]));
  });

  test('tell the events apart, and allow members that nobody knows yet', () => {
    for (const type of EVENT_TYPES) {
      const example = structuredClone(WEBHOOK_EXAMPLES[type]) as Record<string, Record<string, unknown>>;
      const fits = EVENT_TYPES.filter((other) => Compile(EVENT_BODIES[other]).Check(example));
      expect(fits).toEqual([type]);
      const later = { ...example, added: 1, data: { ...example.data, added: { later: true } } };
      expect([type, Compile(EVENT_BODIES[type]).Check(later)]).toEqual([type, true]);
      for (const member of [
        'eventType',
        'userId',
        'wabaId',
        'phoneNumberId',
        'eventId',
        'occurredAt',
        'data',
      ]) {
        const { [member]: _left, ...rest } = example;
        expect([type, member, Compile(EVENT_BODIES[type]).Check(rest)]).toEqual([type, member, false]);
      }
    }
  });

  test('name every header that a webhook carries beside content-type and user-agent', () => {
    const headers = webhookHeaders({
      webhookId: 'evt_1',
      timestampSeconds: 1,
      signature: 'v1,x',
      eventType: 'message',
      eventId: 'x',
      deliveryId: 'dlv_1',
      attempt: 1,
      sequence: 1,
      replay: true,
    });
    const sent = Object.keys(headers).filter((name) => name !== 'content-type' && name !== 'user-agent');
    const { message } = webhookOperations(new Map()) as {
      message: { post: { parameters: { name: string; description?: string }[] } };
    };
    const { parameters } = message.post;
    expect(parameters.map(({ name }) => name)).toEqual(sent);
    expect(parameters.every(({ description }) => description !== undefined)).toBe(true);
  });
});

test.each([...EVENT_TYPES, 'upstream' as const])(
  'every member of %s has a meaning, for portal, site and clients',
  (type) => {
    const schema = type === 'upstream' ? UPSTREAM_EVENT_BODY : EVENT_BODIES[type];
    expect(Object.keys(schema.properties)).toHaveLength(7);
    expect(undescribed(schema as Described)).toEqual([]);
  },
);
