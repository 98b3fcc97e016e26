import {
  findKnownWabas,
  findNumberOwners,
  findWabaOwners,
  type NumberOwner,
} from '../../accounts/accounts.ts';
import {
  type ContactWithConversations,
  type DrawnIds,
  touchConversations,
} from '../../customers/customers.ts';
import { mediaReadyEventId } from '../../deliveries/envelope.ts';
import { findSubscribers, type NewEvent, type PublishedEvent, publishTo } from '../../deliveries/publish.ts';
import type { Subscriber } from '../../endpoints/endpoint-settings.ts';
import { shardOf } from '../../inbox/shards.ts';
import { AWAITS_NUMBER } from '../../inbox/waiting-bodies.ts';
import { insertMedia, storeMediaTask } from '../../messages/media/media.ts';
import {
  findMessageIds,
  insertInboundMessages,
  messageKey,
  type NewInboundMessage,
} from '../../messages/messages.ts';
import { enrichOrderTask, insertOrders } from '../../messages/orders/orders.ts';
import { insertPaymentReports, type NewPaymentReport } from '../../messages/payments.ts';
import { markedMessageId, recordStatuses } from '../../messages/statuses.ts';
import { upstreamTypeOf } from '../../platform/event-type.ts';
import { LastStatements, type Transaction } from '../../platform/postgres/database.ts';
import { insertWorkflowTasks } from '../../platform/temporal/workflow-tasks.ts';
import type { ClaimedDelivery } from '../../queue/claim.ts';
import type { DirectClaimer } from '../../queue/enqueue.ts';
import { drawForNewCustomers, findCustomers, saveCustomers } from '../customers/save-customers.ts';
import { applyFields } from '../fields/apply-fields.ts';
import { lockFurtherShards } from '../locks.ts';
import type { MessageItem } from '../split/message-items.ts';
import type { StatusItem } from '../split/status-items.ts';
import type { NumberItem, Owned, UpstreamItem } from '../split/upstream-items.ts';
import { claimNewItems } from './dedup-keys.ts';
import { type ItemOrigins, refusalOf } from './item-origins.ts';
import type { KnownCustomers } from './known-customers.ts';

/** Items of known numbers with their owners, and why each of the others becomes no event now. */
type SortedItems = { owned: Owned[]; reasons: Map<UpstreamItem, string> };

/** `owners` were asked for before and did not change, as far as their WABA is in one of the shards that are held. */
export type KnownOwners = {
  owners: Map<string, NumberOwner>;
  held: ReadonlySet<number>;
  origins: ItemOrigins;
};

/**
 * Tells whose items they are, under the intake lock of the owner's shard: numbers come and go under that lock, so no item
 * goes to a WABA that does not have the number any more, and none overtakes one that waited for it.
 */
export async function sortItems(
  trx: Transaction,
  items: readonly UpstreamItem[],
  known: KnownOwners,
): Promise<SortedItems> {
  const ofNumbers = items.filter((item) => item.kind !== 'upstream');
  const ofWabas = items.filter((item) => item.kind === 'upstream');
  const owners = await ownersOf(trx, [...new Set(ofNumbers.map((item) => item.phoneNumberId))], known);
  const wabaOwners = await findWabaOwners(trx, [...new Set(ofWabas.map(({ wabaId }) => wabaId))]);
  const strays = ofNumbers.filter((item) => !owners.has(item.phoneNumberId));
  const wabas =
    strays.length === 0
      ? new Set()
      : await findKnownWabas(trx, [...new Set(strays.map(({ wabaId }) => wabaId))]);
  const owned: Owned[] = [];
  const reasons = new Map<UpstreamItem, string>();
  for (const item of items) {
    const isField = item.kind === 'upstream';
    const owner = isField ? wabaOwners.get(item.wabaId) : owners.get(item.phoneNumberId);
    if (owner === undefined) {
      const isAwaited = !isField && wabas.has(item.wabaId);
      reasons.set(item, isAwaited ? AWAITS_NUMBER : isField ? 'unknown_waba' : 'unknown_phone_number');
      continue;
    }
    const refusal = owner.removed ? 'removed_phone_number' : refusalOf(item, owner.wabaId, known.origins);
    if (refusal === null) owned.push({ item, wabaId: owner.wabaId, tenantId: owner.tenantId });
    else reasons.set(item, refusal);
  }
  return { owned, reasons };
}

async function ownersOf(
  trx: Transaction,
  ids: readonly string[],
  { owners, held }: Omit<KnownOwners, 'origins'>,
): Promise<Map<string, NumberOwner>> {
  const isHeld = ({ wabaId }: NumberOwner) => held.has(shardOf(wabaId));
  const remembered = ids.flatMap((id) => {
    const owner = owners.get(id);
    return owner !== undefined && isHeld(owner) ? [[id, owner] as const] : [];
  });
  if (remembered.length === ids.length) return new Map(remembered);
  const isRemembered = new Set(remembered.map(([id]) => id));
  const asked = ids.filter((id) => !isRemembered.has(id));
  const found = await findNumberOwners(trx, asked);
  const foreign = [...found].filter(([, owner]) => !isHeld(owner));
  for (const [id, owner] of found) if (isHeld(owner)) owners.set(id, owner);
  if (foreign.length === 0) return new Map([...remembered, ...found]);
  // Upstream named another WABA than the one that has the number: rare, and its shard is waited for.
  await lockFurtherShards(trx, [...new Set(foreign.map(([, { wabaId }]) => shardOf(wabaId)))]);
  const foreignIds = foreign.map(([id]) => id);
  const again = await findNumberOwners(trx, foreignIds);
  const own = [...found].filter(([, owner]) => isHeld(owner));
  return new Map([...remembered, ...own, ...again]);
}

/**
 * Turns upstream items into messages, statuses, media, orders and events, in their order, in the caller's transaction.
 * The number of statements is fixed; those that do not need each other's results go together, and for most batches the
 * last ones are still under way when this resolves. Their result is the deliveries that `claimer` claimed.
 * `mayWrite` is awaited beside what is read; when it rejects, the transaction is to be undone. Throws TooDearError, before
 * anything is published, when the items lead to more than `mostDeliveries`. `customers` remembers the customers.
 */
export async function commitItems(
  trx: Transaction,
  owned: readonly Owned[],
  claimer: DirectClaimer | null,
  { mayWrite = Promise.resolve(), ...limits }: Limits & { mayWrite?: Promise<void> } = {},
): Promise<LastStatements<ClaimedDelivery[]>> {
  if (owned.length === 0) await mayWrite;
  if (owned.length === 0) return new LastStatements(Promise.resolve([]));
  const ofNumbers = owned.filter(isOfNumber);
  const [fresh, contacts, drawn, subscribers] = await Promise.all([
    claimNewItems(trx, owned),
    findCustomers(trx, ofNumbers),
    drawForNewCustomers(trx, ofNumbers),
    findSubscribers(trx, [...new Set(owned.map(({ wabaId }) => wabaId))]),
    mayWrite,
  ]);
  return await writeItems(trx, fresh, { contacts, drawn, subscribers }, { claimer, ...limits });
}

type Limits = { mostDeliveries?: number; customers?: KnownCustomers };

/** What of the database the writing of items relies on. */
type ReadForItems = {
  contacts: readonly ContactWithConversations[];
  drawn: readonly DrawnIds[];
  subscribers: readonly Subscriber[];
};

/**
 * Writes what items lead to that did not come before, as `commitItems` does. For messages without files and carts, of
 * customers about whom nothing changed, it waits for no response.
 */
async function writeItems(
  trx: Transaction,
  fresh: readonly Owned[],
  { contacts, drawn, subscribers }: ReadForItems,
  {
    claimer,
    mostDeliveries = Number.POSITIVE_INFINITY,
    customers,
  }: Limits & { claimer: DirectClaimer | null },
): Promise<LastStatements<ClaimedDelivery[]>> {
  if (fresh.length === 0) return new LastStatements(Promise.resolve([]));
  const saved = await saveCustomers(trx, fresh.filter(isOfNumber), contacts, drawn);
  const { conversations, touched, written } = saved;
  customers?.note(fresh, saved, subscribers);
  const messages = fresh.filter(isOwnedMessage);
  const statuses = fresh.filter(isOwnedStatus);
  const planned = fresh.flatMap((one) => eventsOf(one, conversations));
  const events = planned.map(({ event }) => event);
  if (countDeliveries(events, subscribers) > mostDeliveries) throw new TooDearError();
  // Conversations first: touching locks them, and message ids are drawn under that lock (docs/decisions/0021). Then
  // messages: their events find them by their upstream ids.
  const sent = Promise.all([
    touchConversations(trx, touched),
    insertInboundMessages(trx, messageRows(messages, conversations)),
    recordStatuses(trx, statuses.map(statusOf)),
    publishTo(trx, subscribers, events, { occurredAt: new Date(), claimer }),
    written,
    applyFields(trx, fresh),
  ]);
  const isAllSent = fresh.every(isOfNumber) && !messages.some(hasParts) && !statuses.some(isMarked);
  if (isAllSent && !events.some(isPayment)) {
    return new LastStatements(sent.then(([, , , published]) => published.claimed));
  }
  const [, , , published] = await sent;
  if (messages.some(hasParts)) await saveParts(trx, messages, planned, published.events);
  await insertPaymentReports(trx, paymentReports(published.events));
  return new LastStatements(Promise.resolve(published.claimed));
}

function countDeliveries(events: readonly NewEvent[], subscribers: readonly Subscriber[]): number {
  const endpoints = Map.groupBy(subscribers, ({ wabaId }) => wabaId);
  return events.reduce((sum, { wabaId }) => sum + (endpoints.get(wabaId)?.length ?? 0), 0);
}

/** What has to be taken in leads to more deliveries than the transaction may make. */
class TooDearError extends Error {}

/** Media and orders are stored under the id of their message. */
function hasParts({ item }: Owned<MessageItem>): boolean {
  return item.media !== null || item.order !== null;
}

/** Its mark leads to further statements. */
function isMarked({ item }: Owned<StatusItem>): boolean {
  return markedMessageId(item.rawJson) !== null;
}

function isPayment({ type }: Pick<NewEvent, 'type'>): boolean {
  return type === 'payment';
}

function paymentReports(events: readonly PublishedEvent[]): NewPaymentReport[] {
  return events.filter(isPayment).map(({ uuid, dataJson, phoneNumberId, ...event }) => ({
    ...event,
    phoneNumberId: phoneNumberId ?? '',
    eventUuid: uuid,
    data: dataJson ?? '{}',
  }));
}

async function saveParts(
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

function statusOf({ item }: Owned<StatusItem>) {
  return { ...item, content: item.rawJson };
}

function isOfNumber(owned: Owned): owned is Owned<NumberItem> {
  return owned.item.kind !== 'upstream';
}

function isOwnedMessage(owned: Owned): owned is Owned<MessageItem> {
  return owned.item.kind === 'message';
}

function isOwnedStatus(owned: Owned): owned is Owned<StatusItem> {
  return owned.item.kind === 'status';
}

function messageRows(
  messages: readonly Owned<MessageItem>[],
  conversations: ReadonlyMap<UpstreamItem, string>,
): NewInboundMessage[] {
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
    groupSender: item.groupId === null ? null : (item.sender.userId ?? item.sender.waId),
  }));
  return onePerMessage(rows);
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

function catalogOf({ order, eventId }: MessageItem): string {
  return order?.catalogId ?? eventId;
}

type PlannedEvent = { event: NewEvent; orderOf: Owned<MessageItem> | null };

/** The event of an item itself. */
export function eventOf({ item, wabaId, tenantId }: Owned, conversationId: string | null): NewEvent {
  const { phoneNumberId, eventId, laneKey, eventData } = item;
  const type = item.kind === 'upstream' ? upstreamTypeOf(item.field) : item.kind;
  const about = item.kind === 'message' ? { upstreamId: item.upstreamId } : {};
  const base = { wabaId, tenantId, phoneNumberId, conversationId, messageId: null, ...about };
  return { ...base, type, eventId, laneKey, dataJson: eventData };
}

function eventsOf(owned: Owned, conversations: ReadonlyMap<UpstreamItem, string>): PlannedEvent[] {
  const event = eventOf(owned, conversations.get(owned.item) ?? null);
  const own: PlannedEvent = { event, orderOf: null };
  if (!isOwnedMessage(owned) || owned.item.order === null) return [own];
  const catalogId = catalogOf(owned.item);
  const order: NewEvent = { ...event, type: 'order', eventId: catalogId, laneKey: catalogId, dataJson: null };
  return [own, { event: order, orderOf: owned }];
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
