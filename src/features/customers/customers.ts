import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryColumn, queryValue } from '../../platform/postgres/sql.ts';
import { moveMember } from './groups.ts';
import { gatherOptOuts } from './kept-opt-outs.ts';

/** Known by a business-scoped user id, a phone (wa_id), or both. */
export type Contact = {
  id: string;
  wabaId: string;
  userId: string | null;
  parentUserId: string | null;
  waId: string | null;
  /** Other digits under which upstream or people write the phone. */
  phones: readonly string[];
  profileName: string | null;
  username: string | null;
};

const CONTACT = `id, waba_id as "wabaId", user_id as "userId", parent_user_id as "parentUserId", wa_id as "waId",
  array(select a.phone from phone_aliases a where a.waba_id = contacts.waba_id and a.wa_id = contacts.wa_id) as phones,
  profile_name as "profileName", username`;

export type ContactWithConversations = Contact & {
  conversations: { id: string; phoneNumberId: string }[];
};

/** By these ids or another spelling of a phone; each with its conversations with these numbers; an id of another of the WABAs may bring more contacts. */
export async function findContacts(
  trx: Transaction,
  ids: readonly { wabaId: string; userId: string | null; waId: string | null }[],
  phoneNumberIds: readonly string[] = [],
): Promise<ContactWithConversations[]> {
  const wabaIds = [...new Set(ids.map((id) => id.wabaId))];
  const users = new Set(ids.flatMap((id) => id.userId ?? []));
  const phones = new Set(ids.flatMap((id) => id.waId ?? []));
  const [byUser, byPhone] = await Promise.all([
    users.size === 0 ? [] : findContactsBy(trx, 'user_id', wabaIds, [...users], phoneNumberIds),
    phones.size === 0 ? [] : findContactsBy(trx, 'wa_id', wabaIds, [...phones], phoneNumberIds),
  ]);
  return [...new Map([...byUser, ...byPhone].map((contact) => [contact.id, contact])).values()];
}

async function findContactsBy(
  trx: Transaction,
  column: 'user_id' | 'wa_id',
  wabaIds: readonly string[],
  values: readonly string[],
  phoneNumberIds: readonly string[],
): Promise<ContactWithConversations[]> {
  const actual =
    column === 'user_id'
      ? ''
      : '|| array(select a.wa_id from phone_aliases a where a.waba_id = any (:wabaIds::text[]) and a.phone = any (:values::text[]))';
  // A customer has few conversations and a number many: no index that begins with the number is to be taken for this.
  return await query<ContactWithConversations>(
    trx,
    `select ${CONTACT},
            coalesce((select json_agg(json_build_object('id', v.id::text, 'phoneNumberId', v.phone_number_id))
                        from conversations v
                       where v.contact_id = contacts.id and v.merged_into is null
                         and v.phone_number_id || '' = any (:phoneNumberIds::text[])), '[]') as conversations
       from contacts where waba_id = any (:wabaIds::text[]) and ${column} = any (:values::text[] ${actual})`,
    { phoneNumberIds, wabaIds, values },
  );
}

export type DrawnIds = { contactId: string; conversationId: string };

/** Ids that are not used are lost. */
export async function drawIds(trx: Transaction, count: number): Promise<DrawnIds[]> {
  if (count <= 0) return [];
  return await query<DrawnIds>(
    trx,
    `select nextval(pg_get_serial_sequence('contacts', 'id')) as "contactId",
            nextval(pg_get_serial_sequence('conversations', 'id')) as "conversationId"
       from generate_series(1, :count::integer)`,
    { count },
  );
}

/**
 * New and changed ones. Ids may move from one contact to another, so all are given up before any is taken: the unique indexes are checked
 * row by row.
 */
export async function saveContacts(trx: Transaction, contacts: readonly Contact[]): Promise<void> {
  if (contacts.length === 0) return;
  const ids = contacts.map((contact) => contact.id);
  const emptied = execute(
    trx,
    'update contacts set user_id = null, wa_id = null where id = any (:ids::bigint[])',
    { ids },
  );
  const written = execute(
    trx,
    `insert into contacts (id, waba_id, user_id, parent_user_id, wa_id, profile_name, username)
     select * from unnest(:ids::bigint[], :wabaId::text[], :userId::text[], :parentUserId::text[], :waId::text[], :profileName::text[], :username::text[])
     on conflict (id) do update set user_id = excluded.user_id, parent_user_id = excluded.parent_user_id,
       wa_id = excluded.wa_id, profile_name = excluded.profile_name, username = excluded.username,
       updated_at = now()`,
    { ids, ...columnsOf(contacts, 'wabaId', 'userId', 'parentUserId', 'waId', 'profileName', 'username') },
  );
  await Promise.all([emptied, written]);
}

export type MergedConversation = { kept: string; dropped: string };

/** `kept` takes over the conversations of `dropped`, which disappears. Returns those with one number, locked: their messages have to follow. */
export async function mergeContacts(
  trx: Transaction,
  wabaId: string,
  keptId: string,
  droppedId: string,
): Promise<MergedConversation[]> {
  const doubles = await query<MergedConversation>(
    trx,
    `select k.id as kept, d.id as dropped from conversations d
       join conversations k on k.phone_number_id = d.phone_number_id and k.contact_id = :keptId and k.merged_into is null
      where d.waba_id = :wabaId and d.contact_id = :droppedId and d.merged_into is null
        for update of k, d`,
    { keptId, wabaId, droppedId },
  );
  for (const { kept, dropped } of doubles) await mergeConversations(trx, kept, dropped);
  await execute(trx, 'update conversations set contact_id = :keptId where contact_id = :droppedId', {
    keptId,
    droppedId,
  });
  await moveMember(trx, keptId, droppedId);
  await gatherOptOuts(trx, keptId, droppedId);
  await execute(trx, 'delete from contacts where waba_id = :wabaId and id = :droppedId', {
    wabaId,
    droppedId,
  });
  return doubles;
}

async function mergeConversations(trx: Transaction, kept: string, dropped: string): Promise<void> {
  await execute(
    trx,
    `update conversations k set last_message_at = greatest(k.last_message_at, d.last_message_at),
            last_call_at = greatest(k.last_call_at, d.last_call_at), last_later_at = greatest(k.last_later_at, d.last_later_at),
            last_later_id = case when coalesce(d.last_later_at > k.last_later_at, k.last_later_at is null) then d.last_later_id else k.last_later_id end
       from conversations d where k.id = :kept and d.id = :dropped`,
    { kept, dropped },
  );
  await execute(
    trx,
    `update conversations k set thread_owner = d.thread_owner, thread_role = d.thread_role, thread_since = d.thread_since
       from conversations d where k.id = :kept and d.id = :dropped and coalesce(k.thread_since < d.thread_since, d.thread_since is not null)`,
    { kept, dropped },
  );
  const merged = 'update conversations set merged_into = :kept where id = :dropped or merged_into = :dropped';
  await execute(trx, merged, { kept, dropped });
}

/** The column of the partner, its type, and which rows stand for themselves. */
const PARTNERS = {
  contact: { column: 'contact_id', type: 'bigint', current: 'merged_into is null' },
  group: { column: 'group_id', type: 'text', current: 'group_id is not null' },
} as const;

/** Of a conversation that a message is put into: now, or later, when the message is sent. */
export type Activity = 'now' | 'later';

/** SQL. An update that changes nothing locks the row. */
const LAST_ACTIVE = { now: 'clock_timestamp()', later: 'conversations.last_message_at' };

export type ConversationPair = { wabaId: string; phoneNumberId: string; partnerId: string };

/**
 * The pairs must differ from each other. The conversations stay locked: message ids of a conversation are drawn only afterwards, which puts
 * them in the order of commits.
 */
export async function openConversations(
  trx: Transaction,
  kind: keyof typeof PARTNERS,
  pairs: readonly ConversationPair[],
  activity: Activity = 'now',
): Promise<(Omit<ConversationPair, 'wabaId'> & { id: string })[]> {
  if (pairs.length === 0) return [];
  const { column, type, current } = PARTNERS[kind];
  return await query(
    trx,
    `insert into conversations (waba_id, phone_number_id, ${column}, last_message_at)
     select *, clock_timestamp() from unnest(:wabaId::text[], :phoneNumberId::text[], :partnerId::${type}[])
     on conflict (phone_number_id, ${column}) where ${current} do update set last_message_at = ${LAST_ACTIVE[activity]}
     returning id, phone_number_id as "phoneNumberId", ${column} as "partnerId"`,
    columnsOf(pairs, 'wabaId', 'phoneNumberId', 'partnerId'),
  );
}

/** The contacts have no conversation yet; the ids were drawn before. */
export async function addConversations(
  trx: Transaction,
  added: readonly (ConversationPair & { id: string })[],
): Promise<void> {
  await execute(
    trx,
    `insert into conversations (id, waba_id, phone_number_id, contact_id, last_message_at)
     select *, clock_timestamp() from unnest(:id::bigint[], :wabaId::text[], :phoneNumberId::text[], :partnerId::bigint[])`,
    columnsOf(added, 'id', 'wabaId', 'phoneNumberId', 'partnerId'),
  );
}

export async function findConversations(
  trx: Transaction,
  kind: keyof typeof PARTNERS,
  pairs: readonly Omit<ConversationPair, 'wabaId'>[],
): Promise<(Omit<ConversationPair, 'wabaId'> & { id: string })[]> {
  if (pairs.length === 0) return [];
  const { column, type, current } = PARTNERS[kind];
  return await query(
    trx,
    `select id, phone_number_id as "phoneNumberId", ${column} as "partnerId" from conversations
      where (phone_number_id, ${column}) in (select * from unnest(:phoneNumberId::text[], :partnerId::${type}[])) and ${current}`,
    columnsOf(pairs, 'phoneNumberId', 'partnerId'),
  );
}

/**
 * Keeps the conversations locked (openConversations). The clock is read while the table is locked, which conversationHorizon relies on:
 * now() would be the time before that.
 */
export async function touchConversations(trx: Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(
    trx,
    'update conversations set last_message_at = clock_timestamp() where id = any (:ids::bigint[])',
    { ids },
  );
}

/** Null: there is no conversation. */
export async function lockKnownConversation(
  trx: Transaction,
  wabaId: string,
  phoneNumberId: string,
  { waId, userId }: { waId: string | null; userId: string | null },
  activity: Activity,
): Promise<string | null> {
  const column = waId === null ? 'user_id' : 'wa_id';
  return await queryValue<string>(
    trx,
    `update conversations set last_message_at = ${LAST_ACTIVE[activity]} from contacts p
      where p.waba_id = :wabaId and p.${column} = :waId and phone_number_id = :phoneNumberId and contact_id = p.id
        and merged_into is null
     returning conversations.id`,
    { wabaId, waId: waId ?? userId ?? '', phoneNumberId },
  );
}

/** Notes that a message which was put into it before is sent now. */
export async function noteLaterMessage(
  database: Database,
  conversationId: string,
  messageId: string,
): Promise<void> {
  await execute(
    database,
    `update conversations set last_message_at = clock_timestamp(), last_later_at = clock_timestamp(), last_later_id = :messageId
      where id = (select coalesce(merged_into, id) from conversations where id = :conversationId)`,
    { conversationId, messageId },
  );
}

/**
 * As `noteLaterMessage`, of several conversations. Returns those that it is noted of: what another transaction has locked is left, for waiting for several could deadlock.
 */
export async function noteLaterMessages(
  database: Database,
  sent: readonly { conversationId: string; messageId: string }[],
): Promise<Set<string>> {
  const noted = await queryColumn<string>(
    database,
    `update conversations c set last_message_at = clock_timestamp(), last_later_at = clock_timestamp(), last_later_id = free.message_id
       from (select v.id, g.message_id
               from unnest(:conversationId::bigint[], :messageId::bigint[]) as g (id, message_id) join conversations v on v.id = g.id
              where v.merged_into is null for update of v skip locked) as free
      where c.id = free.id returning c.id`,
    columnsOf(sent, 'conversationId', 'messageId'),
  );
  return new Set(noted);
}

export async function noteCalls(
  trx: Transaction,
  calls: readonly { conversationId: string; at: Date }[],
): Promise<void> {
  await execute(
    trx,
    `update conversations c set last_call_at = greatest(c.last_call_at, g.at)
       from (select id, max(at) as at from unnest(:conversationId::bigint[], :at::timestamptz[]) as g (id, at) group by id) as g
      where c.id = g.id`,
    columnsOf(calls, 'conversationId', 'at'),
  );
}
