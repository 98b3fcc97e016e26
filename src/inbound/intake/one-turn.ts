import { PUBLISH_PARAMETERS, planPublishing, type StoredEvents } from '../../deliveries/publish.ts';
import { erasedName } from '../../messages/messages.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { INGEST_LOCKS } from '../../platform/postgres/locks.ts';
import { query } from '../../platform/postgres/sql.ts';
import type { ClaimedDelivery } from '../../queue/claim.ts';
import type { DirectClaimer } from '../../queue/enqueue.ts';
import { type NewBody, shardOf } from '../inbox.ts';
import type { MessageItem, Owned } from '../split/upstream-items.ts';
import { type IntakeMemory, lookOf, type ShardMemory } from './backlog.ts';
import { eventOf } from './commit-items.ts';
import { dedupKeyOf } from './dedup-keys.ts';
import { isPlainMessage, type KnownCustomer } from './known-customers.ts';

/** A body with one message of which everything is known that has to be read for others. */
export type Guess = {
  body: NewBody;
  owned: Owned<MessageItem>;
  customer: KnownCustomer;
  epoch: string | null;
};

/** Null where something has to be read first. */
export function guessOf(
  memory: IntakeMemory,
  bodies: readonly NewBody[],
  owned: readonly Owned[],
): Guess | null {
  const [[body, ...otherBodies], [one, ...others]] = [bodies, owned];
  if (body === undefined || one === undefined || otherBodies.length + others.length > 0) return null;
  if (body.shard !== shardOf(one.wabaId) || !isPlainMessage(one)) return null;
  const epoch = memory.of(body.shard).epoch();
  const customer = epoch === null ? null : memory.customers.find(one);
  return epoch === null || customer === null ? null : { body, owned: one, customer, epoch };
}

/**
 * Stores a body with everything that it leads to in one statement, which is its own transaction: the database compares the
 * guess with what is stored. Null, with nothing stored, where the guess is wrong or another transaction has the shard.
 * `onSent`: the statement is sent. What comes behind it in its shard must wait for its result: it does not wait for the lock.
 */
export async function ingestGuessed(
  database: Database,
  shard: Pick<ShardMemory, 'shard' | 'floor'>,
  { body, owned, customer, epoch }: Guess,
  ways: { claimer: DirectClaimer | null; waitMs: number; onSent: () => void },
): Promise<ClaimedDelivery[] | null> {
  const { contact, conversationId, subscribers } = customer;
  const { item } = owned;
  const { fromId, fromDay } = lookOf(shard);
  const event = eventOf(owned, conversationId);
  const options = { occurredAt: new Date(), claimer: ways.claimer };
  const { parameters, published } = planPublishing(subscribers, [event], options);
  const startMs = performance.now();
  const sent = query<StoredEvents | { heads: null; numbers: null }>(database, INGEST, {
    ...parameters,
    ...{ locks: INGEST_LOCKS, waitMs: ways.waitMs, shard: shard.shard, epoch, fromDay, fromId },
    contactId: contact.id,
    contact: [contact.userId, contact.waId, contact.parentUserId, contact.profileName, contact.username],
    endpoints: subscribers.map(({ id, version }) => `${id} ${version}`).join(','),
    ...{ dedupKey: dedupKeyOf(item), erasedName: erasedName(item, item.upstreamId) },
    ...{ body: body.body, signedFor: body.signedFor },
    ...{ type: item.type, content: item.rawJson, contextId: item.contextId },
    ...{ targetId: item.targetId, sentAt: item.sentAt },
  });
  ways.onSent();
  const [row] = await sent;
  if (row === undefined || row.numbers === null) return null;
  shard.floor.looked({ tookMs: performance.now() - startMs, ids: [], firstDay: null });
  return published(database, row).claimed;
}

const INGEST = `select heads, numbers from ingest_message(
  :locks, :waitMs, :shard, :epoch, :fromDay, :fromId, :contactId, :contact, :endpoints, :dedupKey, :erasedName, :body,
  :signedFor, :type, :content, :contextId, :targetId, :sentAt, ${PUBLISH_PARAMETERS})`;
