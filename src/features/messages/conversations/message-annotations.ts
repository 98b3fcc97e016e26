import { member, parseJson, sourceOf, stringOf } from '../../../platform/json/json-text.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { query } from '../../../platform/postgres/sql.ts';
import { MAX_CONTENT_BYTES } from './message-list.ts';

/** A reaction to a message, an edit of it, or its deletion by the customer. */
export type MessageAnnotation = {
  phoneNumberId: string;
  targetId: string;
  type: 'reaction' | 'edit' | 'revoke';
  direction: 'inbound' | 'outbound';
  id: string;
  upstreamId: string;
  at: Date;
  /** JSON text; null when it is larger than any real one. */
  content: string | null;
};

/** The kinds, and how many of each are looked at: who reacts again and again must not make reading slow. */
const KINDS = `(values ('inbound', 'reaction', 100), ('outbound', 'reaction', 20), ('inbound', 'edit', 100),
  ('inbound', 'revoke', 1), ('outbound', 'edit', 100), ('outbound', 'revoke', 1)) as k (direction, type, newest)`;

/**
 * What there is about these messages: the newest reaction of each sender (also one that takes it back), the newest
 * edit, the deletion. Upstream's times decide what is newest, for messages overtake each other. Reactions of the
 * business count once upstream has accepted them, unless they failed.
 */
export async function listAnnotations(
  database: Database,
  wabaId: string,
  messages: readonly { phoneNumberId: string; upstreamId: string | null }[],
): Promise<MessageAnnotation[]> {
  const targets = messages.flatMap(({ phoneNumberId, upstreamId }) =>
    upstreamId === null ? [] : [{ phoneNumberId, upstreamId }],
  );
  if (targets.length === 0) return [];
  // Nearly all messages have nothing: `offset 0` has that found out before the kinds are looked through.
  return await query<MessageAnnotation>(
    database,
    `select t.phone_number_id as "phoneNumberId", t.upstream_id as "targetId", k.type, k.direction, a.id, a.upstream_id as "upstreamId", a.at,
            case when octet_length(a.content) <= ${MAX_CONTENT_BYTES} then a.content end as content
       from (select w.phone_number_id, w.upstream_id
               from unnest(cast(:phoneNumberIds as text[]), cast(:upstreamIds as text[])) as w (phone_number_id, upstream_id)
              where exists (select from messages a
                             where a.phone_number_id = w.phone_number_id and a.target_id = w.upstream_id)
             offset 0) as t
      cross join ${KINDS}
      cross join lateral (
        select distinct on (n.sender) n.* from (
          select a.id, a.upstream_id, least(coalesce(a.sent_at, a.created_at), a.created_at) as at, a.content,
                 case when k.type = 'reaction' then coalesce(a.group_sender, '') else '' end as sender
            from messages a
           where a.phone_number_id = t.phone_number_id and a.target_id = t.upstream_id
             and a.direction = k.direction and a.type = k.type and a.waba_id = :wabaId
           order by a.id desc limit k.newest
        ) as n
          left join message_states s on s.phone_number_id = t.phone_number_id and s.upstream_id = n.upstream_id
         where k.direction = 'inbound' or (n.upstream_id is not null and s.status is distinct from 'failed')
         order by n.sender, n.at desc, n.id desc
      ) as a
      order by a.at, a.id`,
    {
      wabaId,
      phoneNumberIds: targets.map((target) => target.phoneNumberId),
      upstreamIds: targets.map((target) => target.upstreamId),
    },
  );
}

/** Null when the reaction takes an earlier one back. */
export function reactionEmoji(messageJson: string): string | null {
  const message = parseJson(messageJson, { deepNodes: 'mark' });
  return stringOf(member(member(message, 'reaction'), 'emoji')) || null;
}

/** As it is written; null when the `edit` message brings no content. */
export function editedMessageJson(messageJson: string): string | null {
  const edited = member(member(parseJson(messageJson, { deepNodes: 'mark' }), 'edit'), 'message');
  return edited?.kind === 'object' ? sourceOf(edited) : null;
}
