import { PUBLISH_PARAMETERS, planPublishing, type StoredEvents } from '../../deliveries/publish.ts';
import type { NewBody } from '../../inbox/bodies.ts';
import { erasedName, messageKey } from '../../messages/messages.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { byteaArray, query, textArray } from '../../platform/postgres/sql.ts';
import type { ClaimedDelivery } from '../../queue/claim.ts';
import type { DirectClaimer } from '../../queue/enqueue.ts';
import { INGEST_LOCKS } from '../locks.ts';
import type { MessageItem, Owned } from '../split/upstream-items.ts';
import { type IntakeMemory, lookOf, type ShardMemory } from './backlog.ts';
import { eventOf } from './commit-items.ts';
import { dedupKeyOf } from './dedup-keys.ts';
import type { FindCustomer, KnownCustomer } from './known-customers.ts';

/** Bodies with plain messages, and what has to be true for them to be stored as they are. */
export type Guess = {
  shards: readonly (Pick<ShardMemory, 'shard' | 'floor'> & { known: string | null })[];
  bodies: readonly NewBody[];
  messages: readonly KnownMessage[];
};

type KnownMessage = { owned: Owned<MessageItem>; customer: KnownCustomer };

/** Null where a customer is not found, a message comes twice, or there would be more than so many deliveries. */
export function guessOf(
  memory: IntakeMemory,
  { bodies, shards }: { bodies: readonly NewBody[]; shards: readonly number[] },
  owned: readonly Owned<MessageItem>[],
  { find, mostDeliveries }: { find: FindCustomer; mostDeliveries: number },
): Guess | null {
  const messages: KnownMessage[] = [];
  const keys = new Set<string>();
  let deliveries = 0;
  for (const one of owned) {
    const customer = find(one);
    if (customer === null) return null;
    deliveries += customer.subscribers.length;
    keys.add(messageKey(one.item.phoneNumberId, one.item.upstreamId));
    messages.push({ owned: one, customer });
  }
  if (deliveries > mostDeliveries || keys.size < messages.length) return null;
  const looks = shards
    .toSorted((a, b) => a - b)
    .map((shard) => ({ shard, floor: memory.of(shard).floor, known: memory.of(shard).epoch() }));
  return { shards: looks, bodies, messages };
}

/**
 * Stores bodies with everything that they lead to in one statement, which is its own transaction: the database compares the
 * guess with what is stored. Null, with nothing stored, where the guess is wrong or another transaction has a shard.
 * `onSent`: the statement is sent. What comes behind it in its shards must wait for its result: it does not wait for locks.
 */
export async function ingestGuessed(
  database: Database,
  { shards, bodies, messages }: Guess,
  ways: { claimer: DirectClaimer | null; waitMs: number; onSent: () => void },
): Promise<ClaimedDelivery[] | null> {
  const subscribers = new Map(messages.map(({ owned, customer }) => [owned.wabaId, customer.subscribers]));
  const events = messages.map(({ owned, customer }) => eventOf(owned, customer.conversationId));
  const options = { occurredAt: new Date(), claimer: ways.claimer };
  const { parameters, published } = planPublishing([...subscribers.values()].flat(), events, options);
  const startMs = performance.now();
  const sent = query<StoredEvents | { heads: null; lastNumbers: null }>(database, INGEST, {
    ...parameters,
    ...{ locks: INGEST_LOCKS, waitMs: ways.waitMs },
    ...shardColumns(shards),
    wabas: [...subscribers.keys()],
    endpoints: [...subscribers.values()].map((some) =>
      some.map(({ id, version }) => `${id} ${version}`).join(),
    ),
    ...bodyColumns(bodies),
    ...messageColumns(messages),
  });
  ways.onSent();
  const [row] = await sent;
  if (row === undefined || row.lastNumbers === null) return null;
  const tookMs = performance.now() - startMs;
  for (const { floor } of shards) floor.looked({ tookMs, ids: [], firstDay: null });
  return published(database, row).claimed;
}

function shardColumns(shards: Guess['shards']) {
  const looks = shards.map(lookOf);
  const days = looks.map(({ fromDay }) => fromDay);
  return {
    shards: shards.map(({ shard }) => shard),
    epochs: shards.map(({ known }) => known),
    fromIds: looks.map(({ fromId }) => fromId),
    fromDay: days.includes('-infinity') ? '-infinity' : (days.toSorted()[0] ?? '-infinity'),
  };
}

function bodyColumns(bodies: readonly NewBody[]) {
  return {
    bodyWabas: bodies.map(({ wabaId }) => wabaId),
    bodyShards: bodies.map(({ shard }) => shard),
    rawBodies: byteaArray(bodies.map(({ body }) => body)),
    signedFor: bodies.map(({ signedFor }) => signedFor?.join('+') ?? null),
  };
}

function messageColumns(messages: readonly KnownMessage[]) {
  const contacts = messages.map(({ customer: { contact } }) => contact);
  const items = messages.map(({ owned: { item } }) => item);
  return {
    areNew: messages.map(({ customer }) => customer.isNew),
    senderIds: contacts.map(({ id }) => id),
    userIds: contacts.map(({ userId }) => userId),
    waIds: contacts.map(({ waId }) => waId),
    parentUserIds: contacts.map(({ parentUserId }) => parentUserId),
    profileNames: contacts.map(({ profileName }) => profileName),
    usernames: contacts.map(({ username }) => username),
    itemKeys: byteaArray(items.map(dedupKeyOf)),
    erasedNames: items.map((item) => erasedName(item, item.upstreamId)),
    types: items.map(({ type }) => type),
    contents: textArray(items.map(({ rawJson }) => rawJson)),
    contextIds: items.map(({ contextId }) => contextId),
    targetIds: items.map(({ targetId }) => targetId),
    sentTimes: items.map(({ sentAt }) => sentAt),
  };
}

const INGEST = `select heads, last_numbers as "lastNumbers" from ingest_messages(
  :locks, :waitMs, :shards, :epochs, :fromIds, :fromDay, :wabas, :endpoints, :bodyWabas, :bodyShards, :rawBodies, :signedFor,
  :areNew, :senderIds, :userIds, :waIds, :parentUserIds, :profileNames, :usernames, :itemKeys, :erasedNames,
  :types, :contents, :contextIds, :targetIds, :sentTimes, ${PUBLISH_PARAMETERS})`;
