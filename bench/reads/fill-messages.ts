import type { Database } from '../../src/platform/postgres/database.ts';
import { execute, query } from '../../src/platform/postgres/sql.ts';

export type FilledWaba = {
  wabaId: string;
  phoneNumberId: string;
  longConversationId: string;
  conversations: number;
};

/** Of 20 messages one goes to the long conversation: 50,000 of 1,000,000. */
const LONG_EVERY = 20;
const MESSAGES_PER_CONVERSATION = 50;
const EVENTS_SHARE = 5;

/** Rows per statement: a statement may take 30 seconds. */
const STEP = 50_000;

/**
 * Fills one WABA with `messages` messages over a fiftieth as many conversations, half of them outbound with statuses,
 * some with media, reactions and replies, and a fifth as many events.
 */
export async function fillMessages(
  database: Database,
  { wabaId, phoneNumberId }: { wabaId: string; phoneNumberId: string },
  messages: number,
  log: (line: string) => void,
): Promise<FilledWaba> {
  const conversations = Math.max(2, Math.ceil(messages / MESSAGES_PER_CONVERSATION));
  await execute(
    database,
    `with people as (
       insert into contacts (waba_id, wa_id, profile_name)
       select :wabaId, '1202' || 5000000 + n, 'Customer ' || n
         from generate_series(1, cast(:conversations as integer)) n returning id)
     insert into conversations (waba_id, phone_number_id, contact_id, last_message_at)
     select :wabaId, :phoneNumberId, id, now() - (id * 37 % 86400) * interval '1 second' from people`,
    { wabaId, phoneNumberId, conversations },
  );
  const [first] = await query<{ id: string }>(
    database,
    'select min(id) as id from conversations where waba_id = :wabaId',
    { wabaId },
  );
  const firstId = first?.id ?? '';
  for (let from = 1; from <= messages; from += STEP) {
    const to = Math.min(from + STEP - 1, messages);
    await insertMessages(database, { wabaId, phoneNumberId, firstId, conversations, from, to, messages });
    log(`  ${to.toLocaleString('en-US')} messages`);
  }
  await insertEvents(database, { wabaId, phoneNumberId, count: Math.ceil(messages / EVENTS_SHARE) });
  for (const table of [
    'messages',
    'message_states',
    'outbound_messages',
    'media',
    'conversations',
    'contacts',
    'events',
  ]) {
    await database.raw(`vacuum (analyze) ${table}`);
  }
  await database.raw('checkpoint');
  return { wabaId, phoneNumberId, longConversationId: firstId, conversations };
}

type Part = {
  wabaId: string;
  phoneNumberId: string;
  firstId: string;
  conversations: number;
  from: number;
  to: number;
  messages: number;
};

async function insertMessages(database: Database, part: Part): Promise<void> {
  await execute(
    database,
    `with numbered as (
       select n, case when n % ${LONG_EVERY} = 0 then cast(:firstId as bigint)
                      else :firstId + 1 + abs(cast(hashint4(n) as bigint)) % (:conversations - 1) end as conversation,
              n % 2 = 0 as is_outbound
         from generate_series(cast(:from as integer), cast(:to as integer)) n
     ), added as (
       insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, context_id,
                             target_id, sent_at, created_at)
       select :wabaId, :phoneNumberId, conversation, case when is_outbound then 'outbound' else 'inbound' end,
              'wamid.bench.' || n,
              case when n % 50 = 1 then 'reaction' when n % 10 = 3 then 'image' else 'text' end,
              case when n % 50 = 1
                   then '{"type":"reaction","reaction":{"message_id":"wamid.bench.' || n - 1 || '","emoji":"👍"}}'
                   else '{"from":"12025550143","id":"wamid.bench.' || n || '","timestamp":"1790000000","type":"text",'
                        || '"text":{"body":"' || repeat('Is it still on its way? ', 1 + n % 10) || '"}}' end,
              case when n % 4 = 0 then 'wamid.bench.' || n - 3 end,
              case when n % 50 = 1 then 'wamid.bench.' || n - 1 end,
              now() - (:messages - n) * interval '100 milliseconds',
              now() - (:messages - n) * interval '100 milliseconds'
         from numbered order by n returning id, upstream_id, direction, type
     ), stated as (
       insert into message_states select :phoneNumberId, upstream_id, 'read', now() from added where direction = 'outbound'
     ), sent as (
       insert into outbound_messages (message_id, waba_id, phone_number_id, recipient, state, upstream_id)
       select id, :wabaId, :phoneNumberId, '12025550143', 'accepted', upstream_id from added where direction = 'outbound'
     )
     insert into media (message_id, waba_id, state, upstream_media_id, media_type, mime_type, object_key, size_bytes)
     select id, :wabaId, 'stored', cast(id as text), 'image', 'image/jpeg', md5(cast(id as text)), 100000 from added where type = 'image'`,
    part,
  );
}

async function insertEvents(
  database: Database,
  { wabaId, phoneNumberId, count }: { wabaId: string; phoneNumberId: string; count: number },
): Promise<void> {
  for (let from = 1; from <= count; from += STEP) {
    await execute(
      database,
      `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body,
                           occurred_at)
       select cast(at as date), cast(lpad(to_hex(cast(extract(epoch from at) * 1000 as bigint)), 12, '0') || '7000'
                || substr(md5(cast(n as text)), 1, 16) as uuid),
              :wabaId, 1, :phoneNumberId, 'message', 'wamid.bench.' || n, 'message wamid.bench.' || n, 1,
              convert_to('{"data":"' || repeat('x', 700) || '"}', 'UTF8'), at
         from (select n, greatest(date_trunc('day', now()), now() - interval '1 hour') + n * interval '1 millisecond' as at
                 from generate_series(cast(:from as integer), cast(:to as integer)) n) as numbered`,
      { wabaId, phoneNumberId, from, to: Math.min(from + STEP - 1, count) },
    );
  }
}
