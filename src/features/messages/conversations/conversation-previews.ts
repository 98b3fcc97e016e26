import type { Database } from '../../../platform/postgres/database.ts';
import { query } from '../../../platform/postgres/sql.ts';
import { NOT_WRITTEN } from './conversations.ts';
import { LAST_MESSAGE } from './last-message.ts';

/** What a list shows of a conversation beside its customer. */
export type ConversationPreview = {
  id: string;
  displayPhoneNumber: string;
  /** What was said last; null: nothing yet. `content` is null where it is large. */
  direction: 'inbound' | 'outbound' | null;
  type: string | null;
  content: string | null;
  /** When the customer wrote or called last, as far as the newest messages tell. */
  lastContactAt: Date | null;
};

/** More are sent to one customer in a day by few: a list leaves those out. */
const NEWEST = 200;
const MAX_CONTENT_BYTES = 20_000;

/** Of these conversations of a WABA, by id. */
export async function previewConversations(
  database: Database,
  wabaId: string,
  ids: readonly string[],
): Promise<Map<string, ConversationPreview>> {
  const rows = await query<ConversationPreview>(
    database,
    `select c.id, n.display_phone_number as "displayPhoneNumber", last.direction, last.type, last.content,
            greatest(written.at, c.last_call_at) as "lastContactAt"
       from conversations c
       join phone_numbers n on n.phone_number_id = c.phone_number_id
       left join lateral (
         select direction, type, case when octet_length(content) <= ${MAX_CONTENT_BYTES} then content end as content
           from messages where id = (${LAST_MESSAGE})) as last on true
      cross join lateral (
        select max(k.created_at) as at
          from (select direction, type, created_at from messages
                 where conversation_id = c.id order by id desc limit ${NEWEST}) as k
         where k.direction = 'inbound' and k.type not in ${NOT_WRITTEN}) as written
      where c.waba_id = :wabaId and c.id = any (cast(:ids as bigint[]))`,
    { wabaId, ids },
  );
  return new Map(rows.map((row) => [row.id, row]));
}
