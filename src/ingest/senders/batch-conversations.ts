import {
  addConversations,
  type ConversationPair,
  type DrawnIds,
  drawIds,
  findConversations,
  openConversations,
} from '../../features/customers/customers.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { MessageItem } from '../split/message-items.ts';
import type { NumberItem, Owned } from '../split/upstream-items.ts';
import type { BatchCustomer, BatchCustomers } from './batch-customers.ts';

export type SavedConversations = {
  /** The conversation of each message, and of each status or payment whose customer or group has written before. */
  conversations: Map<NumberItem, string>;
  touched: string[];
  /** Statements that have been sent and have no response yet. */
  written: Promise<unknown>;
};

type Known = ReadonlyMap<string, string>;

export function keyOf({ phoneNumberId, partnerId }: Omit<ConversationPair, 'wabaId'>): string {
  return `${phoneNumberId} ${partnerId}`;
}

/** As many ids as are needed: those drawn before, and more. */
export async function enough(
  trx: Transaction,
  drawn: readonly DrawnIds[],
  count: number,
): Promise<readonly DrawnIds[]> {
  return count <= drawn.length ? drawn : [...drawn, ...(await drawIds(trx, count - drawn.length))];
}

export async function conversationsOf(
  trx: Transaction,
  batch: {
    customers: BatchCustomers;
    senders: ReadonlyMap<MessageItem, BatchCustomer>;
    known: Known | null;
    drawn: readonly DrawnIds[];
  },
): Promise<SavedConversations & { known: Known }> {
  const { customers, senders, known, drawn } = batch;
  const pairs = new Map<string, ConversationPair>();
  const pairOf = new Map<MessageItem, string>();
  for (const [item, sender] of senders) {
    // Who writes in a group has written nothing to us alone.
    if (item.groupId !== null) continue;
    const { id, wabaId } = customers.current(sender);
    const pair = { wabaId, phoneNumberId: item.phoneNumberId, partnerId: id ?? '' };
    pairs.set(keyOf(pair), pair);
    pairOf.set(item, keyOf(pair));
  }
  const missing = [...pairs].filter(([key]) => known?.has(key) !== true).map(([, pair]) => pair);
  const { opened, written } = await openMissing(trx, missing, known === null ? null : drawn);
  const idOf = new Map([...(known ?? []), ...byPair(opened)]);
  const touched = [...pairs.keys()].flatMap((key) => known?.get(key) ?? []);
  const conversations = new Map([...pairOf].map(([item, key]) => [item, idOf.get(key) ?? '']));
  return { conversations, touched, written, known: idOf };
}

/** With drawn ids none of them is there, and nothing has to be waited for. */
async function openMissing(
  trx: Transaction,
  missing: readonly ConversationPair[],
  drawn: readonly DrawnIds[] | null,
) {
  const none = Promise.resolve();
  if (missing.length === 0) return { opened: [], written: none };
  if (drawn === null) return { opened: await openConversations(trx, 'contact', missing), written: none };
  const ids = await enough(trx, drawn, missing.length);
  const opened = missing.map((pair, index) => ({ ...pair, id: ids[index]?.conversationId ?? '' }));
  return { opened, written: addConversations(trx, opened) };
}

function byPair(rows: readonly (Omit<ConversationPair, 'wabaId'> & { id: string })[]) {
  return rows.map((row) => [keyOf(row), row.id] as const);
}

type PlacedItem = { item: NumberItem; pair: ConversationPair };

function placed(items: readonly PlacedItem[], known: Known): (readonly [NumberItem, string])[] {
  return items.flatMap(({ item, pair }) => {
    const id = known.get(keyOf(pair));
    return id === undefined ? [] : [[item, id] as const];
  });
}

function placedWith(
  partnerId: string | null,
  { item, wabaId }: { item: NumberItem; wabaId: string },
): PlacedItem[] {
  return partnerId === null ? [] : [{ item, pair: { wabaId, phoneNumberId: item.phoneNumberId, partnerId } }];
}

/** A status opens no conversation: a business may write to a customer who never wrote back. */
export async function conversationsOfStatuses(
  trx: Transaction,
  customers: BatchCustomers,
  items: readonly Owned<NumberItem>[],
  known: Known,
) {
  const statuses = items.flatMap(({ item, wabaId }) =>
    item.kind === 'message' || groupOf(item) !== null
      ? []
      : placedWith(customers.find({ wabaId, ...item.recipient })?.id ?? null, { item, wabaId }),
  );
  const found =
    customers.merges.length === 0 ? [] : await findConversations(trx, 'contact', distinct(statuses));
  return placed(statuses, new Map([...known, ...byPair(found)]));
}

/** An item of a group belongs to the group's conversation, not to its sender's. A message opens it, a status does not. */
export async function conversationsOfGroups(trx: Transaction, items: readonly Owned<NumberItem>[]) {
  const inGroups = items.flatMap(({ item, wabaId }) => placedWith(groupOf(item), { item, wabaId }));
  if (inGroups.length === 0) return [];
  const messages = inGroups.filter(({ item }) => item.kind === 'message');
  const opened = new Map(byPair(await openConversations(trx, 'group', distinct(messages))));
  const others = distinct(inGroups).filter((pair) => !opened.has(keyOf(pair)));
  return placed(inGroups, new Map([...opened, ...byPair(await findConversations(trx, 'group', others))]));
}

function groupOf(item: NumberItem): string | null {
  return item.kind === 'payment' ? null : item.groupId;
}

function distinct(items: readonly PlacedItem[]): ConversationPair[] {
  return [...new Map(items.map(({ pair }) => [keyOf(pair), pair])).values()];
}
