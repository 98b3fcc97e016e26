import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

export type ErasedMessage = {
  id: string;
  phoneNumberId: string;
  upstreamId: string | null;
  supersededId: string | null;
};

export const ERASED_MESSAGE = `m.id, m.phone_number_id as "phoneNumberId", m.upstream_id as "upstreamId",
  m.superseded_upstream_id as "supersededId"`;

type OfConversations = { wabaId: string; conversationIds: readonly string[]; limit: number };

/** Those before `before`, or the newest; the newest first. */
export async function newestMessagesOf(
  database: Database,
  { wabaId, conversationIds, limit }: OfConversations,
  before: string | null,
): Promise<ErasedMessage[]> {
  return await query<ErasedMessage>(
    database,
    `select ${ERASED_MESSAGE} from unnest(cast(:conversationIds as bigint[])) as c (id)
      cross join lateral (select * from messages x where x.conversation_id = c.id and x.waba_id = :wabaId
                             and x.id < coalesce(cast(:before as bigint), 9223372036854775807)
                           order by x.id desc limit ${limit}) as m
      order by m.id desc limit ${limit}`,
    { conversationIds, wabaId, before },
  );
}

/** One conversation after the other. */
export async function nextMessagesOf(
  database: Database,
  { wabaId, conversationIds, limit }: OfConversations,
): Promise<ErasedMessage[]> {
  return await query<ErasedMessage>(
    database,
    `select ${ERASED_MESSAGE} from unnest(cast(:conversationIds as bigint[])) as c (id)
      cross join lateral (select * from messages x where x.conversation_id = c.id and x.waba_id = :wabaId
                           order by x.id limit ${limit}) as m
      limit ${limit}`,
    { conversationIds, wabaId },
  );
}

/** The messages of a group behind `from`, and whether its writer had an id of these then; `untils` by id. */
export async function messagesOfGroup(
  database: Database,
  { groupId, from, limit }: { groupId: string; from: string; limit: number },
  untils: ReadonlyMap<string, string>,
): Promise<(ErasedMessage & { isTheirs: boolean })[]> {
  return await query<ErasedMessage & { isTheirs: boolean }>(
    database,
    `select ${ERASED_MESSAGE},
            exists (select from unnest(cast(:ids as text[]), cast(:untils as timestamptz[])) as n (name, until)
                     where name = group_sender and created_at <= until) as "isTheirs"
       from messages m where conversation_id = :groupId and id > :from order by id limit ${limit}`,
    { ids: [...untils.keys()], untils: [...untils.values()], groupId, from },
  );
}
