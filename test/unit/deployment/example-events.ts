import {
  mediaReadyData,
  mediaReadyEventId,
  serializeEvent,
  TEST_PHONE_NUMBER_ID,
  testEventData,
} from '../../../src/engine/deliveries/envelope.ts';
import { preferenceData } from '../../../src/features/customers/preference-events.ts';
import { windowClosingData } from '../../../src/features/messages/conversations/closing-windows.ts';
import { orderEventData, orderService } from '../../../src/features/messages/orders/orders.ts';
import { splitUpstreamBody, type UpstreamItem } from '../../../src/ingest/split/upstream-items.ts';
import { type CoreEventType, upstreamTypeOf } from '../../../src/platform/event-type.ts';
import { repositoryFile } from './compose-file.ts';

const PUBLIC_URL = 'https://gateway.example';
const OCCURRED_AT = new Date('2026-11-21T09:30:00.123Z');

/** The events that docs/tenants/events.md shows: what the service makes of upstream fixtures, as JSON text. */
export function exampleEvents(): Record<CoreEventType, string> {
  const image = firstItem('in_image_caption_url');
  return {
    message: eventOf(firstItem('in_text')),
    'media.ready': eventOf(image, {
      eventType: 'media.ready',
      eventId: mediaReadyEventId(image.eventId),
      dataJson: mediaReadyData(readyMediaOf(image)),
    }),
    status: eventOf(firstItem('st_delivered')),
    payment: eventOf(firstItem('pay_captured_upi')),
    order: orderEvent(firstItem('in_order')),
    test: eventOf(firstItem('in_text'), {
      eventType: 'test',
      phoneNumberId: TEST_PHONE_NUMBER_ID,
      eventId: 'test_1',
      dataJson: testEventData('Fixture Store'),
    }),
    'window.closing': eventOf(firstItem('in_text'), {
      eventType: 'window.closing',
      eventId: 'window_42_1795256940_60',
      dataJson: windowClosingData({
        conversationId: '42',
        waId: '12025550143',
        userId: null,
        groupId: null,
        lastInboundAt: new Date('2026-11-20T10:29:00Z'),
        lastCallAt: null,
        endsAt: new Date('2026-11-21T10:29:00Z'),
      }),
    }),
    preference: eventOf(firstItem('in_text'), {
      eventType: 'preference',
      eventId: 'preference_42',
      dataJson: preferenceData(
        { waId: '12025550143', userId: null },
        {
          phoneNumberId: '800000000000111',
          scope: 'marketing',
          isStop: true,
          source: 'keyword',
          since: new Date('2026-11-21T09:29:58Z'),
        },
      ),
    }),
  };
}

function firstItem(fixture: string): UpstreamItem {
  const [item] = splitUpstreamBody(
    Buffer.from(repositoryFile(`test/fixtures/upstream/${fixture}.json`)),
  ).items;
  if (item === undefined) throw new Error(`${fixture} has no item`);
  return item;
}

function eventOf(item: UpstreamItem, other: Partial<Parameters<typeof serializeEvent>[0]> = {}): string {
  return serializeEvent({
    eventType: item.kind === 'upstream' ? upstreamTypeOf(item.field) : item.kind,
    userId: 1,
    wabaId: item.wabaId,
    phoneNumberId: item.phoneNumberId,
    eventId: item.eventId,
    occurredAt: OCCURRED_AT,
    dataJson: item.eventData,
    ...other,
  });
}

function readyMediaOf(item: UpstreamItem) {
  const media = item.kind === 'message' ? item.media : null;
  if (item.kind !== 'message' || media === null) throw new Error('not a media message');
  return {
    metaMessageId: item.upstreamId,
    serviceMessageId: '1042',
    mediaType: media.mediaType,
    mimeType: media.mimeType ?? '',
    mediaPath: '/received_media/pP0mK1v3rQ9sZ2xYb7Lw4tNc6uHd8eFa',
    mediaUrl: `${PUBLIC_URL}/received_media/pP0mK1v3rQ9sZ2xYb7Lw4tNc6uHd8eFa`,
    caption: media.caption,
  };
}

function orderEvent(item: UpstreamItem): string {
  if (item.kind !== 'message' || item.order === null || item.orderEventParts === null) {
    throw new Error('not an order message');
  }
  const [first] = item.order.items;
  const service = orderService({
    orderId: 17,
    items: item.order.items,
    products: new Map([
      [first?.retailerId ?? '', { name: 'Red mug', imageUrl: 'https://images.example/red-mug.jpg' }],
    ]),
    placeholderImageUrl: `${PUBLIC_URL}/assets/product-placeholder.png`,
  });
  return eventOf(item, {
    eventType: 'order',
    eventId: item.orderEventParts.eventId,
    dataJson: orderEventData(item.orderEventParts, service),
  });
}
