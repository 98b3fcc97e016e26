import type { ErasedTable } from '../../platform/erasing.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryColumn } from '../../platform/postgres/sql.ts';
import { forgetMembers, GROUP_TABLES } from './groups.ts';
import { keepOptOuts, OPT_OUTS } from './kept-opt-outs.ts';

export const CUSTOMER_TABLES: readonly ErasedTable[] = [
  ...GROUP_TABLES,
  OPT_OUTS,
  { table: 'conversations', count: 'conversations', key: 'id', where: 'merged_into <> id' },
  { table: 'conversations', count: 'conversations', key: 'id' },
  { table: 'contacts', count: 'contacts', key: 'id' },
];

/** SQL over `contacts k`: no conversation and no group. */
export const IS_ALONE = `not exists (select from conversations c where c.contact_id = k.id)
  and not exists (select from group_members g where g.contact_id = k.id and g.state <> 'left')`;

/** SQL over `conversations c`: a group that upstream still has stays known. */
export const IS_EMPTY = `not exists (select from messages m where m.conversation_id = c.id)
  and not exists (select from group_details d where d.conversation_id = c.id and d.state in ('active', 'suspended'))`;

export type ErasedPerson = { id: string; userId: string | null; waId: string | null };

/** A person who writes next is a new customer. Returns the customers with the ids that they had, and their conversations. */
export async function cutOffContacts(
  trx: Transaction,
  wabaId: string,
  { contactIds, ids }: { contactIds: readonly string[]; ids: readonly string[] },
): Promise<{ people: ErasedPerson[]; conversationIds: string[] }> {
  const people = await query<ErasedPerson>(
    trx,
    `select id, user_id as "userId", wa_id as "waId" from contacts
      where waba_id = :wabaId and (id = any (cast(:contactIds as bigint[])) or wa_id = any (cast(:ids as text[]))
        or user_id = any (cast(:ids as text[])))
        for update`,
    { wabaId, contactIds, ids },
  );
  const found = people.map(({ id }) => id);
  const conversationIds = await queryColumn<string>(
    trx,
    `update conversations set merged_into = coalesce(merged_into, id)
      where waba_id = :wabaId and contact_id = any (:found::bigint[]) returning id`,
    { wabaId, found },
  );
  await keepOptOuts(trx, found);
  await execute(
    trx,
    `update contacts set user_id = null, wa_id = null, parent_user_id = null, profile_name = null, username = null
      where id = any (:found::bigint[])`,
    { found },
  );
  await forgetMembers(trx, found);
  return { people, conversationIds };
}

type CutOff = {
  people: ErasedPerson[];
  conversationIds: string[];
  contactIds: string[];
  groupIds: string[];
  phoneNumberId: string | null;
};

/** The next message of the customer, or group, opens another conversation. Those that were merged into these go with them. */
export async function cutOffConversations(
  trx: Transaction,
  wabaId: string,
  ids: readonly string[],
): Promise<CutOff> {
  // They may have been merged into others since they were asked for.
  const current = await queryColumn<string>(
    trx,
    'select coalesce(merged_into, id) from conversations where waba_id = :wabaId and id = any (:ids::bigint[])',
    { wabaId, ids },
  );
  const rows = await query<{ id: string; contactId: string | null; groupId: string | null; number: string }>(
    trx,
    `select id, contact_id as "contactId", group_id as "groupId", phone_number_id as number from conversations
      where waba_id = :wabaId
        and (id = any (cast(:ids as bigint[])) or merged_into = any (cast(:ids as bigint[])))
        for update`,
    { wabaId, ids: current },
  );
  const conversationIds = rows.map(({ id }) => id);
  await execute(
    trx,
    `update conversations set merged_into = case when group_id is null then coalesce(merged_into, id) end,
            group_id = case when group_id is not null then 'erased ' || id end
      where id = any (:conversationIds::bigint[])`,
    { conversationIds },
  );
  const contactIds = rows.flatMap(({ contactId }) => contactId ?? []);
  const people = await query<ErasedPerson>(
    trx,
    'select id, user_id as "userId", wa_id as "waId" from contacts where id = any (:contactIds::bigint[])',
    { contactIds },
  );
  const groupIds = rows.flatMap(({ groupId }) => groupId ?? []);
  return { people, conversationIds, contactIds, groupIds, phoneNumberId: rows[0]?.number ?? null };
}

/** Customers with other conversations stay. Returns how many of each are gone. */
export async function eraseCustomers(
  trx: Transaction,
  { conversationIds, contactIds }: { conversationIds: readonly string[]; contactIds: readonly string[] },
): Promise<{ conversations: number; contacts: number }> {
  const some = 'delete from conversations where id = any (:conversationIds::bigint[])';
  const merged = await execute(trx, `${some} and merged_into <> id`, { conversationIds });
  const others = await execute(trx, some, { conversationIds });
  const alone = await queryColumn<string>(
    trx,
    `select id from contacts k where id = any (:contactIds::bigint[])
        and not exists (select from conversations c where c.contact_id = k.id) for update`,
    { contactIds },
  );
  await keepOptOuts(trx, alone);
  const contacts = await execute(trx, 'delete from contacts where id = any (:alone::bigint[])', { alone });
  return { conversations: merged + others, contacts };
}

/** Only those that are still empty and had no message for so many days, with what was merged into them; returns their customers. */
export async function forgetEmptyConversations(
  trx: Transaction,
  { wabaId, days }: { wabaId: string; days: number },
  conversationIds: readonly string[],
): Promise<string[]> {
  // A send locks its conversation alone: it is waited for, and judged by a statement that sees its message.
  await query(
    trx,
    'select 1 from conversations where waba_id = :wabaId and id = any (cast(:conversationIds as bigint[])) for update',
    { wabaId, conversationIds },
  );
  const gone = await query<{ contactId: string | null }>(
    trx,
    `with empty as (
       select id from conversations c
        where waba_id = :wabaId and id = any (cast(:conversationIds as bigint[]))
          and last_message_at < now() - :days * interval '1 day'
          and ${IS_EMPTY})
     delete from conversations where id in (select id from empty) or merged_into in (select id from empty)
     returning contact_id as "contactId"`,
    { wabaId, days, conversationIds },
  );
  return gone.flatMap(({ contactId }) => contactId ?? []);
}

/** Only those without a conversation; returns the phone numbers that they had. */
export async function forgetContacts(
  trx: Transaction,
  wabaId: string,
  contactIds: readonly string[],
): Promise<string[]> {
  const alone = await queryColumn<string>(
    trx,
    `select id from contacts k where waba_id = :wabaId and id = any (cast(:contactIds as bigint[]))
        and ${IS_ALONE} for update`,
    { wabaId, contactIds },
  );
  await keepOptOuts(trx, alone);
  const people = await query<{ waId: string | null }>(
    trx,
    'delete from contacts where id = any (:alone::bigint[]) returning wa_id as "waId"',
    { alone },
  );
  return people.flatMap(({ waId }) => waId ?? []);
}
