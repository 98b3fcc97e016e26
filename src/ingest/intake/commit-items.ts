import { findSubscribers, publishTo } from '../../engine/deliveries/publish.ts';
import type { Subscriber } from '../../engine/endpoint/endpoint-settings.ts';
import type { ClaimedDelivery } from '../../engine/queue/claim.ts';
import type { DirectClaimer } from '../../engine/queue/enqueue.ts';
import {
  type ContactWithConversations,
  type DrawnIds,
  touchConversations,
} from '../../features/customers/customers.ts';
import {
  insertInboundMessages,
  messageKey,
  type NewInboundMessage,
} from '../../features/messages/messages.ts';
import { insertPaymentReports } from '../../features/messages/payments.ts';
import { markedMessageId, recordStatuses } from '../../features/messages/statuses.ts';
import { LastStatements, type Transaction } from '../../platform/postgres/database.ts';
import { applyFields, isApplied } from '../fields/apply-fields.ts';
import { drawForNewCustomers, findCustomers, saveCustomers } from '../senders/save-customers.ts';
import type { MessageItem } from '../split/message-items.ts';
import type { StatusItem } from '../split/status-items.ts';
import type { NumberItem, Owned, UpstreamItem } from '../split/upstream-items.ts';
import { claimNewItems } from './dedup-keys.ts';
import { eventsOf, isOwnedMessage } from './item-events.ts';
import { hasParts, isPayment, paymentReports, saveParts } from './item-parts.ts';

/**
 * Turns upstream items into messages, statuses, media, orders and events, in their order, in the caller's transaction.
 * The number of statements is fixed; those that do not need each other's results go together, and for most batches the
 * last ones are still under way when this resolves. Their result is the deliveries that `claimer` claimed.
 */
export async function commitItems(
  trx: Transaction,
  owned: readonly Owned[],
  claimer: DirectClaimer | null,
): Promise<LastStatements<ClaimedDelivery[]>> {
  if (owned.length === 0) return new LastStatements(Promise.resolve([]));
  const ofNumbers = owned.filter(isOfNumber);
  const [fresh, contacts, drawn, subscribers] = await Promise.all([
    claimNewItems(trx, owned),
    findCustomers(trx, ofNumbers),
    drawForNewCustomers(trx, ofNumbers),
    findSubscribers(trx, [...new Set(owned.map(({ wabaId }) => wabaId))]),
  ]);
  return await writeItems(trx, fresh, { contacts, drawn, subscribers, claimer });
}

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
  { contacts, drawn, subscribers, claimer }: ReadForItems & { claimer: DirectClaimer | null },
): Promise<LastStatements<ClaimedDelivery[]>> {
  if (fresh.length === 0) return new LastStatements(Promise.resolve([]));
  const { conversations, touched, written } = await saveCustomers(
    trx,
    fresh.filter(isOfNumber),
    contacts,
    drawn,
  );
  const messages = fresh.filter(isOwnedMessage);
  const statuses = fresh.filter(isOwnedStatus);
  const planned = fresh.flatMap((one) => eventsOf(one, conversations));
  const events = planned.map(({ event }) => event);
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
  const isAllSent = !fresh.some(isApplied) && !messages.some(hasParts) && !statuses.some(isMarked);
  if (isAllSent && !events.some(isPayment)) {
    return new LastStatements(sent.then(([, , , published]) => published.claimed));
  }
  const [, , , published] = await sent;
  if (messages.some(hasParts)) await saveParts(trx, messages, planned, published.events);
  await insertPaymentReports(trx, paymentReports(published.events));
  return new LastStatements(Promise.resolve(published.claimed));
}

/** Its mark leads to further statements. */
function isMarked({ item }: Owned<StatusItem>): boolean {
  return markedMessageId(item.rawJson) !== null;
}

function statusOf({ item }: Owned<StatusItem>) {
  return { ...item, content: item.rawJson };
}

function isOfNumber(owned: Owned): owned is Owned<NumberItem> {
  return owned.item.kind !== 'upstream';
}

function isOwnedStatus(owned: Owned): owned is Owned<StatusItem> {
  return owned.item.kind === 'status';
}

function messageRows(
  messages: readonly Owned<MessageItem>[],
  conversations: ReadonlyMap<UpstreamItem, string>,
): NewInboundMessage[] {
  const rows = messages.map(({ item, wabaId }) => ({
    ...item,
    wabaId,
    conversationId: conversations.get(item) ?? '',
    content: item.rawJson,
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
