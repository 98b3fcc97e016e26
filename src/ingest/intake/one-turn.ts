import { PUBLISH_PARAMETERS, planPublishing, type StoredEvents } from '../../engine/deliveries/publish.ts';
import { bodyColumns, lookColumns, type NewBody } from '../../engine/inbox/bodies.ts';
import type { ClaimedDelivery } from '../../engine/queue/claim.ts';
import type { DirectClaimer } from '../../engine/queue/enqueue.ts';
import { messageKey } from '../../features/messages/messages.ts';
import { markedMessageId, statesKept } from '../../features/messages/statuses.ts';
import { byteaArray, textArray } from '../../platform/postgres/arrays.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import type { Owned } from '../split/upstream-items.ts';
import { dedupKeyOf, erasedMarkOf } from './dedup-keys.ts';
import { erasedNameOf } from './erased-name.ts';
import { INGEST_LOCKS } from './intake-locks.ts';
import { eventOf } from './item-events.ts';
import type { KnownCustomer, PlainItem } from './known-customers.ts';
import type { ReadAhead } from './read-ahead.ts';
import { type IntakeMemory, lookOf, type ShardMemory } from './shard-memory.ts';

/** Bodies with plain items, and what has to be true for them to be stored as they are. */
export type Guess = {
  shards: readonly (Pick<ShardMemory, 'shard' | 'floor'> & { known: string | null })[];
  bodies: readonly NewBody[];
  items: readonly KnownItem[];
};

type KnownItem = { owned: Owned<PlainItem>; customer: KnownCustomer };

/** Null where a customer is not found, an item comes twice, or there would be more than so many deliveries. */
export function guessOf(
  memory: IntakeMemory,
  { bodies, shards }: { bodies: readonly NewBody[]; shards: readonly number[] },
  { owned, find, mostDeliveries }: ReadAhead & { mostDeliveries: number },
): Guess | null {
  const items: KnownItem[] = [];
  const keys = new Set<string>();
  let deliveries = 0;
  for (const one of owned) {
    const customer = find(one);
    if (customer === null) return null;
    deliveries += customer.subscribers.length;
    keys.add(uniqueKeyOf(one.item));
    items.push({ owned: one, customer });
  }
  if (deliveries > mostDeliveries || keys.size < items.length) return null;
  // The message may be from whom the status is for.
  if (items.some(isAboutNobody) && items.some(({ customer }) => customer.isNew)) return null;
  const looks = shards
    .toSorted((a, b) => a - b)
    .map((shard) => ({ shard, floor: memory.of(shard).floor, known: memory.of(shard).epoch() }));
  return { shards: looks, bodies, items };
}

function uniqueKeyOf(item: PlainItem): string {
  return item.kind === 'message' ? messageKey(item.phoneNumberId, item.upstreamId) : item.dedupKey;
}

function isAboutNobody({ customer: { person } }: KnownItem): boolean {
  return person === null;
}

/**
 * Stores bodies with everything that they lead to in one statement, which is its own transaction: the database compares the
 * guess with what is stored. Null, with nothing stored, where the guess is wrong or another transaction has a shard.
 * `onSent`: the statement is sent. What comes behind it in its shards must wait for its result: it does not wait for locks.
 */
export async function ingestGuessed(
  database: Database,
  { shards, bodies, items }: Guess,
  ways: { claimer: DirectClaimer | null; waitMs: number; onSent: () => void },
): Promise<ClaimedDelivery[] | null> {
  const subscribers = new Map(items.map(({ owned, customer }) => [owned.wabaId, customer.subscribers]));
  const events = items.map(({ owned, customer: { person } }) =>
    eventOf(owned, person?.conversationId ?? null),
  );
  const options = { occurredAt: new Date(), claimer: ways.claimer };
  const { parameters, published } = planPublishing([...subscribers.values()].flat(), events, options);
  const startMs = performance.now();
  const sent = query<StoredEvents | { heads: null; lastNumbers: null }>(database, INGEST, {
    ...parameters,
    locks: INGEST_LOCKS,
    waitMs: ways.waitMs,
    ...lookColumns(shards.map(lookOf)),
    epochs: shards.map(({ known }) => known),
    wabas: [...subscribers.keys()],
    endpoints: [...subscribers.values()].map((some) =>
      some.map(({ id, version, mode }) => `${id} ${version} ${mode}`).join(),
    ),
    ...bodyColumns(bodies),
    ...itemColumns(items),
    ...messageColumns(items),
    ...statusColumns(items),
  });
  ways.onSent();
  const [row] = await sent;
  if (row === undefined || row.lastNumbers === null) return null;
  const tookMs = performance.now() - startMs;
  for (const { floor } of shards) floor.looked({ tookMs, ids: [], firstDay: null });
  return published(database, row).claimed;
}

function itemColumns(known: readonly KnownItem[]) {
  const contacts = known.map(({ customer: { person } }) => person?.contact ?? null);
  const items = known.map(({ owned: { item } }) => item);
  const persons = known.map(({ owned: { item }, customer: { person } }) =>
    person === null && item.kind === 'status' ? item.recipient : person?.contact,
  );
  return {
    areNew: known.map(({ customer }) => customer.isNew),
    personIds: contacts.map((contact) => contact?.id ?? null),
    userIds: persons.map((person) => person?.userId ?? null),
    waIds: persons.map((person) => person?.waId ?? null),
    parentUserIds: contacts.map((contact) => contact?.parentUserId ?? null),
    profileNames: contacts.map((contact) => contact?.profileName ?? null),
    usernames: contacts.map((contact) => contact?.username ?? null),
    itemKeys: byteaArray(items.map(dedupKeyOf)),
    erasedNames: items.map(erasedNameOf),
    erasedMarks: items.map(erasedMarkOf),
    markedIds: items.map(({ kind, rawJson }) => (kind === 'status' ? markedMessageId(rawJson) : null)),
  };
}

/** Null for statuses. */
function messageColumns(known: readonly KnownItem[]) {
  const messages = known.map(({ owned: { item } }) => (item.kind === 'message' ? item : null));
  return {
    types: messages.map((item) => item?.type ?? null),
    contents: textArray(messages.map((item) => item?.rawJson ?? null)),
    contextIds: messages.map((item) => item?.contextId ?? null),
    targetIds: messages.map((item) => item?.targetId ?? null),
    sentTimes: messages.map((item) => item?.sentAt ?? null),
  };
}

function statusColumns(known: readonly KnownItem[]) {
  const statuses = known.flatMap(({ owned: { item } }) => (item.kind === 'status' ? [item] : []));
  return {
    statusNumbers: statuses.map(({ phoneNumberId }) => phoneNumberId),
    statusIds: statuses.map(({ upstreamId }) => upstreamId),
    statuses: statuses.map(({ status }) => status),
    statusTimes: statuses.map(({ at }) => at),
    statusContents: textArray(statuses.map(({ rawJson }) => rawJson)),
    statesKept: statuses.map(({ status }) => statesKept(status)),
  };
}

const INGEST = `select heads, last_numbers as "lastNumbers" from ingest_items(
  :locks, :waitMs, :shards, :epochs, :fromIds, :fromDay, :wabas, :endpoints, :bodyWabas, :bodyShards, :rawBodies, :signedFor,
  :areNew, :personIds, :userIds, :waIds, :parentUserIds, :profileNames, :usernames,
  :itemKeys, :erasedNames, :erasedMarks, :markedIds, :types, :contents, :contextIds, :targetIds, :sentTimes,
  :statusNumbers, :statusIds, :statuses, :statusTimes, :statusContents, :statesKept, ${PUBLISH_PARAMETERS})`;
