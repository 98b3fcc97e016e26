import { mediaReadyEventId } from '../../engine/deliveries/envelope.ts';
import type { NewEvent, PublishedEvent } from '../../engine/deliveries/publish.ts';
import { insertMedia, storeMediaTask } from '../../features/messages/media/media.ts';
import { findMessageIds, messageKey } from '../../features/messages/messages.ts';
import { enrichOrderTask, insertOrders } from '../../features/messages/orders/orders.ts';
import type { NewPaymentReport } from '../../features/messages/payments.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { insertWorkflowTasks } from '../../platform/temporal/workflow-tasks.ts';
import type { MessageItem } from '../split/message-items.ts';
import type { Owned } from '../split/upstream-items.ts';
import type { PlannedEvent } from './item-events.ts';

/** Media and orders are stored under the id of their message. */
export function hasParts({ item }: Owned<MessageItem>): boolean {
  return item.media !== null || item.order !== null;
}

export async function saveParts(
  trx: Transaction,
  messages: readonly Owned<MessageItem>[],
  planned: readonly PlannedEvent[],
  events: readonly PublishedEvent[],
): Promise<void> {
  const ids = await findMessageIds(
    trx,
    messages.map(({ item }) => item),
  );
  const idOf = (item: MessageItem) => ids.get(messageKey(item.phoneNumberId, item.upstreamId)) ?? null;
  await saveMedia(trx, messages, idOf);
  const orders = planned.flatMap(({ orderOf }, index) => {
    const event = events[index];
    return orderOf === null || event === undefined ? [] : [{ orderOf, event }];
  });
  await saveOrders(trx, orders, idOf);
}

async function saveMedia(
  trx: Transaction,
  messages: readonly Owned<MessageItem>[],
  idOf: (item: MessageItem) => string | null,
): Promise<void> {
  const rows = messages.flatMap(({ item, wabaId }) => {
    const messageId = idOf(item);
    return item.media === null || messageId === null
      ? []
      : [{ wabaId, messageId, eventId: mediaReadyEventId(item.eventId), ...item.media }];
  });
  if (rows.length === 0) return;
  const fetched = rows.filter(({ upstreamMediaId }) => upstreamMediaId !== null);
  // A placeholder and its real message may come in one batch.
  await insertMedia(trx, [...new Map([...rows, ...fetched].map((row) => [row.messageId, row])).values()]);
  await insertWorkflowTasks(trx, fetched.map(storeMediaTask));
}

async function saveOrders(
  trx: Transaction,
  orders: readonly {
    orderOf: Owned<MessageItem>;
    event: PublishedEvent;
  }[],
  idOf: (item: MessageItem) => string | null,
): Promise<void> {
  const rows = orders.map(({ orderOf: { item, wabaId }, event }) => ({
    wabaId,
    messageId: idOf(item) ?? '',
    phoneNumberId: item.phoneNumberId,
    catalogId: item.order?.catalogId ?? null,
    cartJson: JSON.stringify({ parts: item.orderEventParts, items: item.order?.items ?? [] }),
    eventDay: event.day,
    eventUuid: event.uuid,
  }));
  if (rows.length === 0) return;
  const orderIds = await insertOrders(trx, rows);
  await insertWorkflowTasks(
    trx,
    orderIds.map((order, index) => enrichOrderTask(order, orders[index]?.event.eventId ?? '')),
  );
}

export function isPayment({ type }: Pick<NewEvent, 'type'>): boolean {
  return type === 'payment';
}

export function paymentReports(events: readonly PublishedEvent[]): NewPaymentReport[] {
  return events.filter(isPayment).map(({ uuid, dataJson, phoneNumberId, ...event }) => ({
    ...event,
    phoneNumberId: phoneNumberId ?? '',
    eventUuid: uuid,
    data: dataJson ?? '{}',
  }));
}
