import type { NewEvent } from '../../engine/deliveries/publish.ts';
import { upstreamTypeOf } from '../../platform/event-type.ts';
import type { MessageItem } from '../split/message-items.ts';
import type { Owned, UpstreamItem } from '../split/upstream-items.ts';

export type PlannedEvent = { event: NewEvent; orderOf: Owned<MessageItem> | null };

export function eventOf({ item, wabaId, tenantId }: Owned, conversationId: string | null): NewEvent {
  const { phoneNumberId, eventId, laneKey, eventData } = item;
  const type = item.kind === 'upstream' ? upstreamTypeOf(item.field) : item.kind;
  const about = item.kind === 'message' ? { upstreamId: item.upstreamId } : {};
  const base = { wabaId, tenantId, phoneNumberId, conversationId, messageId: null, ...about };
  return { ...base, type, eventId, laneKey, dataJson: eventData };
}

export function eventsOf(owned: Owned, conversations: ReadonlyMap<UpstreamItem, string>): PlannedEvent[] {
  const event = eventOf(owned, conversations.get(owned.item) ?? null);
  const own: PlannedEvent = { event, orderOf: null };
  if (!isOwnedMessage(owned) || owned.item.order === null) return [own];
  const catalogId = catalogOf(owned.item);
  const order: NewEvent = { ...event, type: 'order', eventId: catalogId, laneKey: catalogId, dataJson: null };
  return [own, { event: order, orderOf: owned }];
}

function catalogOf({ order, eventId }: MessageItem): string {
  return order?.catalogId ?? eventId;
}

export function isOwnedMessage(owned: Owned): owned is Owned<MessageItem> {
  return owned.item.kind === 'message';
}
