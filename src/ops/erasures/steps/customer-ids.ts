import { idsInEcho, idsInMessage } from '../../../ingest/bodies/erase-bodies.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { query, queryColumn } from '../../../platform/postgres/sql.ts';

/** By id: a time, with microseconds. */
export type IdTimes = Readonly<Record<string, string>>;

const MESSAGES_PER_PAGE = 1_000;

/** The newest first; ids with the time of the newest message by which they name the customer. `next` null: there are no further messages. */
export async function seeIds(
  database: Database,
  { wabaId, conversationIds }: { wabaId: string; conversationIds: readonly string[] },
  seen: IdTimes,
  before: string | null,
): Promise<{ seen: IdTimes; next: string | null }> {
  const page = await query<{
    id: string;
    at: string;
    isEcho: boolean;
    recipient: string | null;
    content: string | null;
  }>(
    database,
    `select m.id, to_char(m.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at, o.recipient,
            m.direction = 'outbound' as "isEcho", case when m.direction = 'inbound' or m.origin is not null then m.content end as content
       from unnest(cast(:conversationIds as bigint[])) as c (id)
      cross join lateral (select * from messages x where x.conversation_id = c.id and x.waba_id = :wabaId
                             and x.id < coalesce(cast(:before as bigint), 9223372036854775807)
                           order by x.id desc limit ${MESSAGES_PER_PAGE}) as m
       left join outbound_messages o on o.message_id = m.id
      order by m.id desc limit ${MESSAGES_PER_PAGE}`,
    { conversationIds, wabaId, before },
  );
  const all: Record<string, string> = { ...seen };
  for (const { at, isEcho, recipient, content } of page) {
    const ids = content === null ? [recipient] : isEcho ? idsInEcho(content) : idsInMessage(content);
    for (const id of ids) if (id !== null && id !== '') all[id] ??= at;
  }
  return { seen: all, next: page.length < MESSAGES_PER_PAGE ? null : (page.at(-1)?.id ?? null) };
}

export type JudgedIds = {
  ids: string[];
  /** Another customer has them now: until when they were this one's. */
  heldUntil: IdTimes;
};

/**
 * Their own ids, other spellings of these, and those that were seen. A number may have gone to another person since: of it only what was
 * before the last message that named this customer by it is theirs.
 */
export async function judgeIds(
  database: Database,
  customer: { wabaId: string; contactIds: readonly string[]; ids: readonly string[] },
  seen: IdTimes,
): Promise<JudgedIds> {
  const { ids: own, wabaId } = customer;
  const aliases = await queryColumn<string>(
    database,
    `select phone from phone_aliases where waba_id = :wabaId and wa_id = any (cast(:own as text[]))
     union
     select wa_id from phone_aliases where waba_id = :wabaId and phone = any (cast(:own as text[]))`,
    { wabaId, own },
  );
  const further = [...Object.keys(seen), ...aliases].filter((id) => !own.includes(id));
  const ofOthers = await queryColumn<string>(
    database,
    `select wa_id from contacts
      where waba_id = :wabaId and wa_id = any (cast(:further as text[])) and id <> all (cast(:contactIds as bigint[]))
     union
     select user_id from contacts
      where waba_id = :wabaId and user_id = any (cast(:further as text[])) and id <> all (cast(:contactIds as bigint[]))`,
    { wabaId, further, contactIds: customer.contactIds },
  );
  const held = new Set(ofOthers);
  const ids = [...own, ...further].filter((id) => !held.has(id) || seen[id] !== undefined);
  const heldUntil = Object.entries(seen).filter(([id]) => held.has(id));
  return { ids: [...new Set(ids)], heldUntil: Object.fromEntries(heldUntil) };
}

export async function idsOfCustomer(
  database: Database,
  customer: { wabaId: string; customerId: string; ids: readonly string[] },
): Promise<{ ids: string[]; untils: string[] }> {
  const { wabaId, customerId } = customer;
  const conversationIds = await queryColumn<string>(
    database,
    'select id from conversations where waba_id = :wabaId and contact_id = :customerId',
    { wabaId, customerId },
  );
  const where = { wabaId, conversationIds };
  let found = await seeIds(database, where, {}, null);
  while (found.next !== null) found = await seeIds(database, where, found.seen, found.next);
  const { ids, heldUntil } = await judgeIds(database, { ...customer, contactIds: [customerId] }, found.seen);
  return { ids, untils: ids.map((id) => heldUntil[id] ?? 'infinity') };
}
