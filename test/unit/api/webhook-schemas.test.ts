import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import { EVENT_BODIES } from '../../../src/api/openapi/webhooks/event-body-schemas.ts';
import { WEBHOOK_EXAMPLES } from '../../../src/api/openapi/webhooks/webhook-examples.ts';
import { webhookOperations } from '../../../src/api/openapi/webhooks/webhook-operations.ts';
import { serializeEvent } from '../../../src/deliveries/envelope.ts';
import { webhookHeaders } from '../../../src/deliveries/webhook-request.ts';
import type { UpstreamItem } from '../../../src/inbound/split/upstream-items.ts';
import { orderEventData, orderService } from '../../../src/messages/orders.ts';
import { EVENT_TYPES, type EventType } from '../../../src/platform/event-type.ts';
import { exampleEvents } from '../deployment/example-events.ts';
import { fixtureNames, splitFixture } from '../inbound/support/upstream-body.ts';

function envelope(item: UpstreamItem, eventType: EventType, dataJson: string): unknown {
  const { wabaId, phoneNumberId, eventId } = item;
  const members = { eventType, userId: 1, wabaId, phoneNumberId, eventId, dataJson };
  return JSON.parse(serializeEvent({ ...members, occurredAt: new Date() }));
}

/** The events that an upstream item becomes, as the service writes them. */
function eventsOf(item: UpstreamItem): { type: EventType; body: unknown }[] {
  const events: { type: EventType; body: unknown }[] = [
    { type: item.kind, body: envelope(item, item.kind, item.eventData) },
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
      new Set(['message', 'status', 'payment', 'order']),
    );
    for (const { name, type, body } of events) {
      expect([name, [...Compile(EVENT_BODIES[type]).Errors(body)]]).toEqual([name, []]);
    }
  });

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
