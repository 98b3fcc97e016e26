import type { Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { markedMessageId } from '../send-marker.ts';

const MAX_ID = 2n ** 63n - 1n;

type MarkedStatus = { phoneNumberId: string; upstreamId: string; content: string };

/**
 * A status that carries our mark proves that upstream has the message: ends what is known of its sending with that,
 * also when the request got no answer, or when another attempt was about to be made.
 */
export async function acceptByStatuses(trx: Transaction, statuses: readonly MarkedStatus[]): Promise<void> {
  const marked = new Map<string, MarkedStatus>();
  for (const status of statuses) {
    const messageId = markedMessageId(status.content);
    if (messageId !== null && BigInt(messageId) <= MAX_ID) marked.set(messageId, status);
  }
  if (marked.size === 0) return;
  const accepted = await query<{ messageId: string }>(
    trx,
    `update outbound_messages o
        set state = 'accepted', upstream_id = g.upstream_id, error = null, sending_until = null, finished_at = now()
       from unnest(?::bigint[], ?::text[], ?::text[]) as g (message_id, phone_number_id, upstream_id)
      where o.message_id = g.message_id and o.phone_number_id = g.phone_number_id
        and o.state in ('queued', 'sending', 'unknown') and o.attempts > 0
     returning o.message_id as "messageId"`,
    [
      [...marked.keys()],
      [...marked.values()].map((status) => status.phoneNumberId),
      [...marked.values()].map((status) => status.upstreamId),
    ],
  );
  if (accepted.length === 0) return;
  const ids = accepted.map((row) => row.messageId);
  await query(
    trx,
    `update messages m
        set sent_at = coalesce(sent_at, now()), upstream_id = o.upstream_id
       from outbound_messages o
      where m.id = any (?::bigint[]) and o.message_id = m.id and m.upstream_id is null
        and not exists (select 1 from messages x
                         where x.phone_number_id = m.phone_number_id and x.upstream_id = o.upstream_id)`,
    [ids],
  );
  for (const id of ids) trx.notify('heliograph_sends', id);
}
