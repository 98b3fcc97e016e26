import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { CONVERSATION_COLUMNS, type ConversationRow } from './conversation-list.ts';

export type ConversationDetail = ConversationRow & {
  displayPhoneNumber: string;
  verifiedName: string;
  inboundCount: number;
  outboundCount: number;
  /** When the customer last wrote, by upstream's clock; null: not among the messages that were looked at. */
  lastInboundAt: Date | null;
  /** Whether that was less than 24 hours ago, by the database's clock; a group has no such window. */
  isWindowOpen: boolean;
};

/** How many of the newest messages are counted: read from the index alone, about 2 ms. */
export const MAX_COUNTED_MESSAGES = 10_000;

/**
 * How many are looked through for what the customer wrote last: more than can be sent to one customer in 24 hours, so
 * that an open window is always found.
 */
const MAX_SCANNED_MESSAGES = 20_000;

/** Messages that overtook each other on their way: the latest of so many counts. */
const NEWEST_INBOUND = 50;

/** Upstream says these about a customer; he wrote nothing. */
const NOT_WRITTEN = `('system', 'edit', 'revoke')`;

/** One conversation of a WABA; for one that was merged into another, that one. Null when there is none. */
export async function findConversation(
  database: Database,
  wabaId: string,
  conversationId: string,
): Promise<ConversationDetail | null> {
  const newest = (limit: number) =>
    `select x.id, x.direction, x.type from messages x where x.conversation_id = c.id order by x.id desc limit ${limit}`;
  const [row] = await query<ConversationDetail>(
    database,
    `select ${CONVERSATION_COLUMNS}, n.display_phone_number as "displayPhoneNumber",
            n.verified_name as "verifiedName", counted.inbound as "inboundCount", counted.outbound as "outboundCount",
            written.at as "lastInboundAt",
            coalesce(written.at > now() - interval '24 hours' and c.group_id is null, false) as "isWindowOpen"
       from (select coalesce(merged_into, id) as id from conversations
              where waba_id = :wabaId and id = :conversationId) as kept
       join conversations c on c.id = kept.id and c.waba_id = :wabaId
       left join contacts u on u.id = c.contact_id and u.waba_id = c.waba_id
       join phone_numbers n on n.phone_number_id = c.phone_number_id
      cross join lateral (
        select cast(count(*) filter (where k.direction = 'inbound') as integer) as inbound,
               cast(count(*) filter (where k.direction = 'outbound') as integer) as outbound
          from (${newest(MAX_COUNTED_MESSAGES)}) as k) as counted
      cross join lateral (
        select max(coalesce(m.sent_at, m.created_at)) as at
          from (select k.id from (${newest(MAX_SCANNED_MESSAGES)}) as k
                 where k.direction = 'inbound' and k.type not in ${NOT_WRITTEN}
                 order by k.id desc limit ${NEWEST_INBOUND}) as recent
          join messages m on m.id = recent.id) as written`,
    { wabaId, conversationId },
  );
  return row ?? null;
}
