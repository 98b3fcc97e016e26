import { createHash } from 'node:crypto';
import { findNumberOwners } from '../../database/accounts.ts';
import type { Transaction } from '../../database/database.ts';
import { claimDedupKeys } from '../../database/dedup-keys.ts';
import { type NewEvent, type PublishedEvent, publishEvents } from '../../database/event-publisher.ts';
import { insertMedia } from '../../database/media.ts';
import { recordStatuses } from '../../database/message-statuses.ts';
import { insertInboundMessages, messageKey } from '../../database/messages.ts';
import { insertOrders } from '../../database/orders.ts';
import { insertWorkflowTasks } from '../../database/workflow-tasks.ts';
import { mediaReadyEventId } from '../../domain/envelope.ts';
import type { MessageItem } from '../../domain/upstream/message-item.ts';
import type { StatusItem } from '../../domain/upstream/status-item.ts';
import type { UpstreamItem } from '../../domain/upstream/upstream-items.ts';
import type { Owned } from './owned-item.ts';
import { saveCustomers } from './save-customers.ts';

/**
 * Turns upstream items into messages, statuses, media, orders and events, in their order, in the caller's
 * transaction and with a fixed number of statements. Returns the items whose number no tenant owns.
 */
export async function commitItems(trx: Transaction, items: readonly UpstreamItem[]): Promise<UpstreamItem[]> {
  const { owned, unknown } = await findOwners(trx, items);
  const fresh = await notSeenBefore(trx, owned);
  if (fresh.length === 0) return unknown;
  const messages = fresh.filter(isOwnedMessage);
  const statuses = fresh.filter(isOwnedStatus);
  const conversations = await saveCustomers(trx, fresh.filter(hasCustomer));
  const messageIds = await saveMessages(trx, messages, conversations);
  await recordStatuses(
    trx,
    statuses.map(({ item }) => ({ ...item, content: item.rawJson })),
  );
  const idOf = (item: UpstreamItem) =>
    item.kind === 'message'
      ? (messageIds.get(messageKey(item.phoneNumberId, item.upstreamId)) ?? null)
      : null;
  await saveMedia(trx, messages, idOf);
  const events = fresh.flatMap((one) => eventsOf(one, idOf(one.item), conversations));
  const published = await publishEvents(
    trx,
    events.map(({ event }) => event),
    new Date(),
  );
  await saveOrders(
    trx,
    events.flatMap(({ orderOf }, index) => {
      const event = published[index];
      return orderOf === null || event === undefined ? [] : [{ orderOf, event }];
    }),
  );
  return unknown;
}

function isOwnedMessage(owned: Owned): owned is Owned<MessageItem> {
  return owned.item.kind === 'message';
}

function isOwnedStatus(owned: Owned): owned is Owned<StatusItem> {
  return owned.item.kind === 'status';
}

function hasCustomer(owned: Owned): owned is Owned<MessageItem | StatusItem> {
  return isOwnedMessage(owned) || isOwnedStatus(owned);
}

async function findOwners(trx: Transaction, items: readonly UpstreamItem[]) {
  const owners = await findNumberOwners(trx, [...new Set(items.map((item) => item.phoneNumberId))]);
  const owned: Owned[] = [];
  const unknown: UpstreamItem[] = [];
  for (const item of items) {
    const owner = owners.get(item.phoneNumberId);
    if (owner === undefined) unknown.push(item);
    else owned.push({ item, ...owner });
  }
  return { owned, unknown };
}

/** Upstream sends what it sent before, to us and to several of us at once: the database decides who is first. */
async function notSeenBefore(trx: Transaction, owned: readonly Owned[]): Promise<Owned[]> {
  const first = new Map<string, { one: Owned; key: Buffer }>();
  for (const one of owned) {
    const key = createHash('sha256').update(one.item.dedupKey).digest();
    const hex = key.toString('hex');
    if (!first.has(hex)) first.set(hex, { one, key });
  }
  if (first.size === 0) return [];
  const claimed = await claimDedupKeys(
    trx,
    [...first.values()].map(({ key }) => key),
  );
  return [...first].filter(([hex]) => claimed.has(hex)).map(([, { one }]) => one);
}

async function saveMessages(
  trx: Transaction,
  messages: readonly Owned<MessageItem>[],
  conversations: ReadonlyMap<MessageItem, string>,
): Promise<Map<string, string>> {
  if (messages.length === 0) return new Map();
  const rows = messages.map(({ item, wabaId }) => ({
    wabaId,
    phoneNumberId: item.phoneNumberId,
    conversationId: conversations.get(item) ?? '',
    upstreamId: item.upstreamId,
    type: item.type,
    placeholder: item.placeholder,
    content: item.rawJson,
    contextId: item.contextId,
    targetId: item.targetId,
    sentAt: item.sentAt,
  }));
  return await insertInboundMessages(trx, onePerMessage(rows));
}

/** A placeholder and its real message may come in one batch; one statement may not touch a row twice. */
function onePerMessage<Row extends { phoneNumberId: string; upstreamId: string; placeholder: boolean }>(
  rows: readonly Row[],
): Row[] {
  const kept = new Map<string, Row>();
  for (const row of rows) {
    const key = messageKey(row.phoneNumberId, row.upstreamId);
    if (!kept.has(key) || !row.placeholder) kept.set(key, row);
  }
  return [...kept.values()];
}

async function saveMedia(
  trx: Transaction,
  messages: readonly Owned<MessageItem>[],
  idOf: (item: UpstreamItem) => string | null,
): Promise<void> {
  const rows = messages.flatMap(({ item, wabaId }) => {
    const messageId = idOf(item);
    return item.media === null || messageId === null
      ? []
      : [{ wabaId, messageId, eventId: mediaReadyEventId(item.eventId), ...item.media }];
  });
  await insertMedia(trx, rows);
  await insertWorkflowTasks(
    trx,
    rows.map(({ wabaId, messageId, eventId }) => ({
      workflowId: `media/${messageId}`,
      workflowType: 'storeInboundMedia' as const,
      wabaId,
      eventId,
      argument: { wabaId, messageId },
    })),
  );
}

type PlannedEvent = { event: NewEvent; orderOf: Owned<MessageItem> | null };

function eventsOf(
  owned: Owned,
  messageId: string | null,
  conversations: ReadonlyMap<MessageItem, string>,
): PlannedEvent[] {
  const { item, wabaId, tenantId } = owned;
  const conversationId = item.kind === 'message' ? (conversations.get(item) ?? null) : null;
  const { phoneNumberId, eventId, laneKey } = item;
  const base = { wabaId, tenantId, phoneNumberId, conversationId, messageId };
  const own: PlannedEvent = {
    event: { ...base, type: item.kind, eventId, laneKey, dataJson: item.eventData },
    orderOf: null,
  };
  if (!isOwnedMessage(owned) || owned.item.order === null) return [own];
  const catalogId = owned.item.order.catalogId ?? eventId;
  const order: NewEvent = { ...base, type: 'order', eventId: catalogId, laneKey: catalogId, dataJson: null };
  return [own, { event: order, orderOf: owned }];
}

async function saveOrders(
  trx: Transaction,
  orders: readonly {
    orderOf: Owned<MessageItem>;
    event: PublishedEvent;
  }[],
): Promise<void> {
  const rows = orders.map(({ orderOf: { item, wabaId }, event }) => ({
    wabaId,
    messageId: event.messageId ?? '',
    phoneNumberId: item.phoneNumberId,
    catalogId: item.order?.catalogId ?? null,
    cartJson: JSON.stringify({ parts: item.orderEventParts, items: item.order?.items ?? [] }),
    eventDay: event.day,
    eventUuid: event.uuid,
  }));
  const orderIds = await insertOrders(trx, rows);
  await insertWorkflowTasks(
    trx,
    orderIds.map(({ orderId, wabaId }, index) => ({
      workflowId: `order/${orderId}`,
      workflowType: 'enrichOrder' as const,
      wabaId,
      eventId: orders[index]?.event.eventId ?? '',
      argument: { wabaId, orderId },
    })),
  );
}
