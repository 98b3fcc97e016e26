import { keepOrderScopes } from '../../deliveries/publish.ts';
import type { ClaimedDelivery } from '../../deliveries/queue/claim.ts';
import type { DirectClaimer } from '../../deliveries/queue/enqueue.ts';
import { type Database, LastStatements, type Transaction } from '../../platform/postgres/database.ts';
import { HELD_SHARDS, tryIntakeLocks } from '../../platform/postgres/locks.ts';
import { query } from '../../platform/postgres/sql.ts';
import { insertTakenIn, type NewBody, shardOf } from '../inbox.ts';
import type { MessageItem, Owned } from '../split/upstream-items.ts';
import { type IntakeMemory, lookOf } from './backlog.ts';
import { writeItems } from './commit-items.ts';
import { requireNewItem } from './dedup-keys.ts';
import { isPlainMessage, type KnownCustomer } from './known-customers.ts';

/** A body with one message of which everything is known that has to be read for others. */
export type Guess = { body: NewBody; owned: Owned<MessageItem>; customer: KnownCustomer; epoch: string };

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
 * Keeps a body and takes it in with everything in one round trip: the database compares what is remembered, and undoes all of
 * it where that is no longer so. Then it rejects with an error that `isWrongGuess` tells. `onSent`: all statements are sent.
 */
export async function takeInGuessed(
  database: Database,
  memory: IntakeMemory,
  { body, owned, customer, epoch }: Guess,
  ways: { claimer: DirectClaimer | null; waitMs: number; onSent: () => void },
): Promise<ClaimedDelivery[]> {
  const { contact, conversationId, subscribers } = customer;
  const conversations = [{ id: conversationId, phoneNumberId: owned.item.phoneNumberId }];
  const shard = memory.of(body.shard);
  const startMs = performance.now();
  const claimed = await database.transaction(async (trx) => {
    const { fromId, fromDay } = lookOf(shard);
    const required = Promise.all([
      tryIntakeLocks(trx, [body.shard], { waitMs: ways.waitMs }),
      keepOrderScopes(trx, [owned.wabaId]),
      requireKnown(trx, owned, customer, { shard: body.shard, epoch, fromId, fromDay }),
      requireNewItem(trx, owned),
      insertTakenIn(trx, [body]),
    ]);
    required.catch(() => undefined);
    const read = { contacts: [{ ...contact, conversations }], drawn: [], states: [], subscribers };
    const { answers } = await writeItems(trx, [owned], read, ways);
    ways.onSent();
    return new LastStatements(Promise.all([answers, required]).then(([last]) => last));
  });
  shard.floor.looked({ tookMs: performance.now() - startMs, ids: [], firstDay: null });
  return claimed;
}

/**
 * Undoes the transaction unless the shard is ours with nothing waiting in it, the number has the owner that is known,
 * the customer is as known, and so are the endpoints, whose order scopes cannot change any more.
 */
async function requireKnown(
  trx: Transaction,
  { wabaId, item: { phoneNumberId } }: Owned<MessageItem>,
  { contact, conversationId, subscribers }: KnownCustomer,
  look: { shard: number; epoch: string; fromId: string; fromDay: string },
): Promise<void> {
  await query(
    trx,
    `select require_so(
       cast(:shard as integer) = any (${HELD_SHARDS})
       and (select epoch from intake_epochs where shard = :shard) = cast(:epoch as bigint)
       and (select id from inbox where received_day >= cast(:fromDay as date) and state = 'new' and shard = :shard
               and id >= cast(:fromId as bigint) order by shard, id limit 1) is null
       and exists (select from contacts where id = cast(:contactId as bigint) and waba_id = :wabaId
                      and user_id is not distinct from :userId and wa_id is not distinct from :waId
                      and parent_user_id is not distinct from :parentUserId
                      and profile_name is not distinct from :profileName and username is not distinct from :username)
       and exists (select from conversations where id = cast(:conversationId as bigint) and merged_into is null
                      and contact_id = cast(:contactId as bigint) and phone_number_id = :phoneNumberId)
       and coalesce((select string_agg(id || ' ' || version, ',' order by id) from webhook_endpoints
                      where waba_id = :wabaId), '') = :endpoints)`,
    {
      ...{ ...look, wabaId, phoneNumberId, conversationId, contactId: contact.id },
      userId: contact.userId,
      waId: contact.waId,
      parentUserId: contact.parentUserId,
      profileName: contact.profileName,
      username: contact.username,
      endpoints: subscribers.map(({ id, version }) => `${id} ${version}`).join(','),
    },
  );
}

/** Whether a guess failed because what was remembered is no longer so: it is to be read anew. */
export function isWrongGuess(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'HG001';
}
