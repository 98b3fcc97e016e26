import type { Database } from './database.ts';
import { query } from './sql.ts';

export type ConversationRow = {
  id: string;
  phoneNumberId: string;
  waId: string | null;
  userId: string | null;
  name: string | null;
  username: string | null;
  lastMessageAt: Date;
  createdAt: Date;
  /** `lastMessageAt` with all its digits: a Date has no microseconds, and a cursor must not skip any. */
  lastMessageAtText: string;
};

export type ConversationPage = {
  phoneNumberId: string | null;
  after: { lastMessageAtText: string; id: string } | null;
  limit: number;
};

/** Up to `limit` conversations of a WABA, the most recently active first. Merged ones are left out. */
export async function listConversations(
  database: Database,
  wabaId: string,
  { phoneNumberId, after, limit }: ConversationPage,
): Promise<ConversationRow[]> {
  const ofNumber = phoneNumberId === null ? '' : 'and c.phone_number_id = :phoneNumberId';
  const behind =
    after === null ? '' : 'and (c.last_message_at, c.id) < (cast(:at as timestamptz), cast(:id as bigint))';
  return await query<ConversationRow>(
    database,
    `select c.id, c.phone_number_id as "phoneNumberId", u.wa_id as "waId", nullif(u.user_id, '') as "userId",
            u.profile_name as "name", u.username, c.last_message_at as "lastMessageAt", c.created_at as "createdAt",
            cast(c.last_message_at as text) as "lastMessageAtText"
       from conversations c join contacts u on u.id = c.contact_id and u.waba_id = c.waba_id
      where c.waba_id = :wabaId and c.merged_into is null ${ofNumber} ${behind}
      order by c.last_message_at desc, c.id desc limit :limit`,
    {
      wabaId,
      limit,
      ...(phoneNumberId === null ? {} : { phoneNumberId }),
      ...(after === null ? {} : { at: after.lastMessageAtText, id: after.id }),
    },
  );
}
