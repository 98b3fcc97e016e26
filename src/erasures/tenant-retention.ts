import { lockCustomers } from '../customers/customers-lock.ts';
import {
  forgetContacts,
  forgetEmptyConversations,
  IS_ALONE,
  IS_EMPTY,
} from '../customers/erase-customers.ts';
import { expireEventsOf } from '../deliveries/erase-events.ts';
import { holdIntake, lockIntake } from '../inbox/intake-lock.ts';
import { shardOf } from '../inbox/shards.ts';
import {
  ERASED_MESSAGE,
  type ErasedMessage,
  eraseMessages,
  expireFiles,
  forgetAliases,
  rememberMessages,
} from '../messages/erase-messages.ts';
import { removeObjects } from '../platform/erasing.ts';
import type { ObjectStore } from '../platform/object-store/object-store.ts';
import type { Database, Transaction } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';

type Tools = { database: Database; objectStore: Pick<ObjectStore, 'remove'> };

/** Begins behind `behind` and ends there, or once `ending` is aborted. */
type Round = {
  ending: AbortSignal;
  /** Each gets its turn: the next round goes on behind the one that was begun last. Null: none yet. */
  behind: string | null;
};

function newRound(): Round {
  return { ending: new AbortController().signal, behind: null };
}

export function tenantRetentionSteps(
  tools: Tools,
): { name: string; run: (ending: AbortSignal) => Promise<void>; everyMs?: number }[] {
  const step = (name: string, expire: (tools: Tools, round: Round) => Promise<void>) => {
    const round = newRound();
    const run = (ending: AbortSignal) => expire(tools, Object.assign(round, { ending }));
    return { name, run };
  };
  return [
    step('files of tenants', expireMedia),
    step('messages of tenants', expireMessages),
    step('conversations of tenants', expireConversations),
    // Goes through all that have not changed for long, most of which have a conversation.
    { ...step('customers of tenants', expireContacts), everyMs: DAY_MS },
    step('events of tenants', expireEvents),
    step('audit log of tenants', expireAuditEntries),
  ];
}

type Limit = { wabaId: string; days: number };

/** Looked at by one statement, and taken away by one transaction. */
const ROWS_PER_BATCH = 200;

/** For one WABA, or tenant, in one turn of housekeeping; what is left goes in the next. */
const LONGEST_MS = 60_000;

/** Where the next batch begins, behind what had to stay; null: there is none. */
type Next = string | null;

/** Of the WABAs whose tenants keep it for a time of their own. */
async function forEachLimit(
  database: Database,
  column: 'media_days' | 'event_days' | 'message_days',
  round: Round,
  batch: (limit: Limit, after: Next) => Promise<Next>,
): Promise<void> {
  const limits = await query<Limit>(
    database,
    `select w.waba_id as "wabaId", p.${column} as days
       from tenant_policies p join wabas w on w.tenant_id = p.tenant_id
      where p.${column} is not null order by w.waba_id <= cast(? as text), w.waba_id`,
    [round.behind],
  );
  for (const limit of limits) {
    if (round.ending.aborted) return;
    round.behind = limit.wabaId;
    await whileItMay(round, (after) => batch(limit, after));
  }
}

async function whileItMay({ ending }: Round, batch: (after: Next) => Promise<Next>): Promise<void> {
  const endMs = performance.now() + LONGEST_MS;
  let after: Next = null;
  do after = await batch(after);
  while (after !== null && !ending.aborted && performance.now() < endMs);
}

/** Their rows say so, and their URLs answer 410. */
export async function expireMedia({ database, objectStore }: Tools, round = newRound()): Promise<void> {
  await forEachLimit(database, 'media_days', round, async (limit) => {
    const files = await query<{ id: string; key: string }>(
      database,
      `select message_id as id, object_key as key from media
        where waba_id = :wabaId and state = 'stored' and finished_at < now() - :days * interval '1 day'
        order by finished_at limit ${ROWS_PER_BATCH}`,
      limit,
    );
    await removeObjects(
      objectStore,
      files.map(({ key }) => key),
    );
    await expireFiles(database, files);
    return files.length === ROWS_PER_BATCH ? '' : null;
  });
}

/**
 * Deliveries and attempts go too, unless a delivery is open. Reports of payments and numbers of ordering keys stay, as they do when the
 * installation drops a day.
 */
export async function expireEvents({ database }: Pick<Tools, 'database'>, round = newRound()): Promise<void> {
  await forEachLimit(database, 'event_days', round, async (limit, after) =>
    expireEventsOf(database, limit, after),
  );
}

const DAY_MS = 86_400_000;

/** Nothing of it is under way: no send, no download, no delivery. */
const IS_AT_REST = `
  not exists (select from outbound_messages o where o.message_id = m.id and o.state in ('queued', 'sending'))
  and not exists (select from media d where d.message_id = m.id and d.state = 'pending')
  and not exists (select from events e join deliveries d on d.event_uuid = e.id
                    join delivery_queue q on q.delivery_id = d.id
                   where e.waba_id = m.waba_id
                     and e.event_id in (m.upstream_id, m.upstream_id || '_media', 'local:' || m.id,
                                        m.superseded_upstream_id, m.superseded_upstream_id || '_media'))
  and not exists (select from orders o join deliveries d on d.event_uuid = o.event_uuid
                    join delivery_queue q on q.delivery_id = d.id where o.message_id = m.id)`;

/** Statuses, files, events and deliveries go too. What is under way stays until it has ended. */
export async function expireMessages(tools: Tools, round = newRound()): Promise<void> {
  await forEachLimit(tools.database, 'message_days', round, async (limit, after) =>
    expireMessagesOf(tools, limit, after),
  );
}

type WalkedMessage = ErasedMessage & { at: string; isAtRest: boolean };

async function expireMessagesOf(tools: Tools, limit: Limit, after: Next): Promise<Next> {
  const [afterAt = '-infinity', afterId = '0'] = after?.split(' ') ?? [];
  const walked = await query<WalkedMessage>(
    tools.database,
    `select ${ERASED_MESSAGE}, m.at, ${IS_AT_REST} as "isAtRest"
       from (select *, to_char(created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at from messages
              where waba_id = :wabaId and created_at < now() - :days * interval '1 day'
                and (created_at, id) > (cast(:afterAt as timestamptz), cast(:afterId as bigint))
              order by created_at, id limit ${ROWS_PER_BATCH}) as m`,
    { ...limit, afterAt, afterId },
  );
  const messages = walked.filter(({ isAtRest }) => isAtRest);
  if (messages.length > 0) await eraseOld(tools, limit.wabaId, messages);
  const last = walked.at(-1);
  return walked.length === ROWS_PER_BATCH && last !== undefined ? `${last.at} ${last.id}` : null;
}

async function eraseOld(
  { database, objectStore }: Tools,
  wabaId: string,
  messages: readonly WalkedMessage[],
): Promise<void> {
  const files = await query<{ key: string }>(
    database,
    'select object_key as key from media where message_id = any (?::bigint[]) and object_key is not null',
    [messages.map(({ id }) => id)],
  );
  await removeObjects(
    objectStore,
    files.map(({ key }) => key),
  );
  // What intake has taken in about them by then goes with them, and it takes nothing more: it need not wait meanwhile.
  await database.transaction(async (trx) => {
    await holdIntake(trx, shardOf(wabaId));
    await rememberMessages(trx, messages);
  });
  // A tenant's own files stay for as long as they are promised to.
  await database.transaction(async (trx) => await eraseMessages(trx, wabaId, messages, { uploads: 'stay' }));
}

/** Of these nothing is left since their tenants keep messages no longer. */
export async function expireConversations(
  { database }: Pick<Tools, 'database'>,
  round = newRound(),
): Promise<void> {
  await forEachLimit(database, 'message_days', round, async (limit, after) =>
    expireConversationsOf(database, limit, after),
  );
}

async function expireConversationsOf(database: Database, limit: Limit, after: Next): Promise<Next> {
  const [afterAt = '-infinity', afterId = '0'] = after?.split(' ') ?? [];
  const walked = await query<{ id: string; at: string; isEmpty: boolean }>(
    database,
    `select id, at, ${IS_EMPTY} as "isEmpty"
       from (select id, to_char(last_message_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at from conversations
              where waba_id = :wabaId and merged_into is null and last_message_at < now() - :days * interval '1 day'
                and (last_message_at, id) > (cast(:afterAt as timestamptz), cast(:afterId as bigint))
              order by last_message_at, id limit ${ROWS_PER_BATCH}) as c`,
    { ...limit, afterAt, afterId },
  );
  const empty = walked.filter(({ isEmpty }) => isEmpty).map(({ id }) => id);
  if (empty.length > 0) await forgetConversations(database, limit, empty);
  const last = walked.at(-1);
  return walked.length === ROWS_PER_BATCH && last !== undefined ? `${last.at} ${last.id}` : null;
}

/**
 * Under the locks of those who add messages: what they remember of a conversation ends with it. One that has got a message
 * meanwhile stays. What was merged into it has no messages, and goes with it.
 */
async function forgetConversations(
  database: Database,
  { wabaId, days }: Limit,
  conversationIds: readonly string[],
): Promise<void> {
  await database.transaction(async (trx) => {
    await lockIntake(trx, shardOf(wabaId));
    await lockCustomers(trx, shardOf(wabaId));
    const contactIds = await forgetEmptyConversations(trx, { wabaId, days }, conversationIds);
    await forgetCustomers(trx, wabaId, contactIds);
  });
}

async function forgetCustomers(
  trx: Transaction,
  wabaId: string,
  contactIds: readonly string[],
): Promise<void> {
  await forgetAliases(trx, wabaId, await forgetContacts(trx, wabaId, contactIds));
}

/** Customers without a conversation, such as those who wrote in a group only, of whom nothing changed for as long as their tenants keep messages. */
export async function expireContacts(
  { database }: Pick<Tools, 'database'>,
  round = newRound(),
): Promise<void> {
  await forEachLimit(database, 'message_days', round, async (limit, after) =>
    expireContactsOf(database, limit, after),
  );
}

const CONTACTS_PER_BATCH = 1_000;

async function expireContactsOf(database: Database, limit: Limit, after: Next): Promise<Next> {
  const { wabaId } = limit;
  const [afterAt = '-infinity', afterId = '0'] = after?.split(' ') ?? [];
  const walked = await query<{ id: string; at: string; isAlone: boolean }>(
    database,
    `select id, at, ${IS_ALONE} as "isAlone"
       from (select id, to_char(updated_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at from contacts
              where waba_id = :wabaId and updated_at < now() - :days * interval '1 day'
                and (updated_at, id) > (cast(:afterAt as timestamptz), cast(:afterId as bigint))
              order by updated_at, id limit ${CONTACTS_PER_BATCH}) as k`,
    { ...limit, afterAt, afterId },
  );
  const alone = walked.filter(({ isAlone }) => isAlone).map(({ id }) => id);
  if (alone.length > 0) {
    await database.transaction(async (trx) => {
      await lockIntake(trx, shardOf(wabaId));
      await lockCustomers(trx, shardOf(wabaId));
      await forgetCustomers(trx, wabaId, alone);
    });
  }
  const last = walked.at(-1);
  return walked.length === CONTACTS_PER_BATCH && last !== undefined ? `${last.at} ${last.id}` : null;
}

const ENTRIES_PER_BATCH = 1_000;

/** The database judges which, and notes it there. */
export async function expireAuditEntries(
  { database }: Pick<Tools, 'database'>,
  round = newRound(),
): Promise<void> {
  const tenants = await query<{ id: string }>(
    database,
    `select tenant_id as id from tenant_policies where audit_days is not null
      order by tenant_id <= cast(? as bigint), tenant_id`,
    [round.behind],
  );
  for (const { id } of tenants) {
    if (round.ending.aborted) return;
    round.behind = id;
    await whileItMay(round, async () => {
      const [row] = await query<{ gone: number }>(
        database,
        `select expire_audit_entries(cast(? as bigint), ${ENTRIES_PER_BATCH}) as gone`,
        [id],
      );
      return row?.gone === ENTRIES_PER_BATCH ? '' : null;
    });
  }
}
