/** No customer has more scheduled messages: a conversation with more shows no last message. */
const MOST_UNSENT = 1_000;

/** SQL: whether a message `x` was scheduled and has not been sent. One row by its key each: a join may be made of all that is scheduled. */
const IS_UNSENT = `x.direction = 'outbound' and coalesce((
  select sm.is_open or sm.cancelled_at is not null from scheduled_messages sm where sm.message_id = x.id), false)`;

/**
 * SQL: the id of what was said last in the conversation `c`. Ids are in the order in which messages were stored, and a scheduled one is stored
 * long before it is sent: the conversation names the one that was sent last.
 */
export const LAST_MESSAGE = `
  select said.id from (
    (select x.id, x.created_at as at
       from (select s.id, s.created_at, s.direction from messages s where s.conversation_id = c.id order by s.id desc limit ${MOST_UNSENT}) as x
      where not (${IS_UNSENT}) order by x.id desc limit 1)
    union all
    (select x.id, c.last_later_at from messages x
      where x.id = c.last_later_id and x.conversation_id = c.id and not (${IS_UNSENT}))) as said
   order by said.at desc, said.id desc limit 1`;
