import type { Database } from '../../../platform/postgres/database.ts';
import { query } from '../../../platform/postgres/sql.ts';
import type { ConversationMessage } from './message-list.ts';

export type Participant = {
  /** The phone number, or the user id where upstream names no phone number. */
  participant: string;
  status: string;
  at: Date | null;
};

/** For one answer; upstream lets eight people into a group. */
const MAX_ROWS = 5_000;

/** What a member has reported that is the furthest; a failure comes after nothing but `sent`. */
const FURTHEST = `array_position(array['accepted', 'sent', 'failed', 'delivered', 'read', 'played'], status)`;

type Listed = Pick<ConversationMessage, 'id' | 'phoneNumberId' | 'upstreamId' | 'direction' | 'content'>;

/** Only these have statuses per member, so that no other page costs a statement. */
function isToGroup({ direction, content, upstreamId }: Listed): boolean {
  return direction === 'outbound' && upstreamId !== null && content.includes('"recipient_type":"group"');
}

export async function listParticipants(
  database: Database,
  messages: readonly Listed[],
): Promise<ReadonlyMap<string, readonly Participant[]>> {
  const asked = messages.filter(isToGroup);
  if (asked.length === 0) return new Map();
  const rows = await query<Participant & { id: string }>(
    database,
    `select distinct on (g.id, s.participant) g.id, s.participant, s.status, s.at
       from unnest(cast(:ids as bigint[]), cast(:phoneNumberIds as text[]), cast(:upstreamIds as text[]))
              as g (id, phone_number_id, upstream_id)
      cross join lateral (
        select participant, status, at from message_statuses x
         where x.phone_number_id = g.phone_number_id and x.upstream_id = g.upstream_id and x.participant <> ''
         limit ${MAX_ROWS}) as s
      order by g.id, s.participant, coalesce(${FURTHEST}, 0) desc limit ${MAX_ROWS}`,
    {
      ids: asked.map(({ id }) => id),
      phoneNumberIds: asked.map(({ phoneNumberId }) => phoneNumberId),
      upstreamIds: asked.map(({ upstreamId }) => upstreamId),
    },
  );
  return Map.groupBy(rows, ({ id }) => id);
}
