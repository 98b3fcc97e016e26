import type { ErasedTable } from '../../platform/erasing.ts';
import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query } from '../../platform/postgres/sql.ts';

export type GroupState = 'active' | 'suspended' | 'deleted';

type MemberState = 'member' | 'requested' | 'left';

/** A text without its time is not reported. */
export type GroupNews = {
  conversationId: string;
  wabaId: string;
  subject: string | null;
  subjectAt: Date | null;
  description: string | null;
  descriptionAt: Date | null;
  state: GroupState | null;
  stateAt: Date | null;
};

/** At most one per conversation, unless something newer is known. */
export async function noteGroups(trx: Transaction, news: readonly GroupNews[]): Promise<void> {
  if (news.length === 0) return;
  const newer = (name: string) => `excluded.${name}_at >= coalesce(d.${name}_at, '-infinity')`;
  await execute(
    trx,
    `insert into group_details as d (conversation_id, waba_id, subject, subject_at, description, description_at, state, state_at)
     select * from unnest(:conversationId::bigint[], :wabaId::text[], :subject::text[], :subjectAt::timestamptz[], :description::text[], :descriptionAt::timestamptz[], :state::text[],
                          :stateAt::timestamptz[])
     on conflict (conversation_id) do update
        set subject = case when ${newer('subject')} then excluded.subject else d.subject end,
            subject_at = greatest(d.subject_at, excluded.subject_at),
            description = case when ${newer('description')} then excluded.description else d.description end,
            description_at = greatest(d.description_at, excluded.description_at),
            state = case when d.state = 'deleted' or excluded.state is null then d.state
                         when excluded.state = 'deleted' or ${newer('state')} then excluded.state else d.state end,
            state_at = greatest(d.state_at, excluded.state_at)`,
    columnsOf(
      news,
      'conversationId',
      'wabaId',
      'subject',
      'subjectAt',
      'description',
      'descriptionAt',
      'state',
      'stateAt',
    ),
  );
  const deleted = news.filter(({ state }) => state === 'deleted').map(({ conversationId }) => conversationId);
  if (deleted.length > 0) {
    await execute(trx, 'delete from group_members where conversation_id = any (:deleted::bigint[])', {
      deleted,
    });
  }
}

export type NewMember = {
  conversationId: string;
  contactId: string;
  wabaId: string;
  state: MemberState;
  at: Date;
};

/** At most one per person and group, unless something newer is known. A deleted group has no members. */
export async function noteMembers(trx: Transaction, members: readonly NewMember[]): Promise<void> {
  if (members.length === 0) return;
  await execute(
    trx,
    `insert into group_members as g (conversation_id, contact_id, waba_id, state, at)
     select n.* from unnest(:conversationId::bigint[], :contactId::bigint[], :wabaId::text[], :state::text[], :at::timestamptz[])
              as n (conversation_id, contact_id, waba_id, state, at)
      where not exists (select from group_details d where d.conversation_id = n.conversation_id and d.state = 'deleted')
     on conflict (conversation_id, contact_id) do update set state = excluded.state, at = excluded.at
      where excluded.at >= g.at`,
    columnsOf(members, 'conversationId', 'contactId', 'wabaId', 'state', 'at'),
  );
}

export async function moveMember(trx: Transaction, keptId: string, droppedId: string): Promise<void> {
  await execute(
    trx,
    `insert into group_members as g (conversation_id, contact_id, waba_id, state, at)
     select conversation_id, :keptId, waba_id, state, at from group_members where contact_id = :droppedId
     on conflict (conversation_id, contact_id) do update set state = excluded.state, at = excluded.at
      where excluded.at > g.at`,
    { keptId, droppedId },
  );
}

export async function forgetMembers(trx: Transaction, contactIds: readonly string[]): Promise<void> {
  await execute(trx, 'delete from group_members where contact_id = any (:contactIds::bigint[])', {
    contactIds,
  });
}

export type GroupMember = {
  waId: string | null;
  userId: string | null;
  name: string | null;
  username: string | null;
  state: Exclude<MemberState, 'left'>;
  at: Date;
};

/** Upstream lets eight people into a group. */
const MOST_MEMBERS = 1_024;

/** As far as upstream reported it: the first who came first. */
export async function listGroupMembers(database: Database, conversationId: string): Promise<GroupMember[]> {
  return await query<GroupMember>(
    database,
    `select k.wa_id as "waId", nullif(k.user_id, '') as "userId", k.profile_name as name, k.username, g.state, g.at
       from group_members g join contacts k on k.id = g.contact_id
      where g.conversation_id = :conversationId and g.state <> 'left' order by g.at, g.contact_id limit ${MOST_MEMBERS}`,
    { conversationId },
  );
}

/** Upstream repeats what was not answered for 7 days. */
const LEFT_KEPT_DAYS = 14;

export async function forgetLeftMembers(database: Database, limit: number): Promise<number> {
  const which = `state = 'left' and at < now() - interval '${LEFT_KEPT_DAYS} days' order by at`;
  return await deleteUpTo(database, limit, 'group_members', which);
}

export const GROUP_TABLES: readonly ErasedTable[] = [
  { table: 'group_members', count: 'groupMembers', key: 'conversation_id, contact_id' },
  { table: 'group_details', count: 'groups', key: 'conversation_id' },
];
