import { columnsOf } from '../../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { execute, hasRow, query, queryColumn, queryValue } from '../../../platform/postgres/sql.ts';
import type { BodyParameters } from './broadcast-message.ts';

/**
 * pending: has no message yet; queued: its message waits for its turn, or is being sent; suppressed: the customer wants none; unknown: upstream may have
 * it or not; cancelled: the broadcast was cancelled before its turn.
 */
export const RECIPIENT_STATES = [
  'pending',
  'queued',
  'suppressed',
  'accepted',
  'delivered',
  'read',
  'failed',
  'unknown',
  'cancelled',
] as const;
export type RecipientState = (typeof RECIPIENT_STATES)[number];

export type NewRecipient = {
  /** Digits of a phone, or a business-scoped user id. */
  recipient: string;
  ref: string | null;
  parameters: BodyParameters | null;
};

/** Returns those that it did not have. */
export async function insertRecipients(
  trx: Transaction,
  { wabaId, broadcastId }: { wabaId: string; broadcastId: string },
  recipients: readonly NewRecipient[],
): Promise<Set<string>> {
  const added = await queryColumn<string>(
    trx,
    `insert into broadcast_recipients (broadcast_id, waba_id, recipient, ref, parameters)
     select cast(:broadcastId as bigint), cast(:wabaId as text), recipient, ref, parameters
       from unnest(:recipients::text[], :refs::text[], :parameters::text[]) as g (recipient, ref, parameters)
     on conflict do nothing returning recipient`,
    {
      broadcastId,
      wabaId,
      recipients: recipients.map(({ recipient }) => recipient),
      refs: recipients.map(({ ref }) => ref),
      parameters: recipients.map(({ parameters }) =>
        parameters === null ? null : JSON.stringify(parameters),
      ),
    },
  );
  return new Set(added);
}

/** Which of these are recipients of it. */
export async function takenNames(
  trx: Transaction,
  { wabaId, broadcastId }: { wabaId: string; broadcastId: string },
  names: readonly string[],
): Promise<Set<string>> {
  const taken = await queryColumn<string>(
    trx,
    `select recipient from broadcast_recipients
      where waba_id = :wabaId and broadcast_id = :broadcastId and recipient = any (cast(:names as text[]))`,
    { wabaId, broadcastId, names },
  );
  return new Set(taken);
}

export type PendingRecipient = NewRecipient & { id: string };

type PendingRow = Omit<PendingRecipient, 'parameters'> & { parameters: string | null };

/** Behind every recipient. */
export const LAST_RECIPIENT = '9223372036854775807';

/** The next that have no message, in the order in which they were added, up to the recipient `upTo`. */
export async function nextPending(
  database: Database,
  broadcastId: string,
  limit: number,
  upTo = LAST_RECIPIENT,
): Promise<PendingRecipient[]> {
  const rows = await query<PendingRow>(
    database,
    `select id, recipient, ref, parameters from broadcast_recipients
      where broadcast_id = :broadcastId and state = 'pending' and id <= cast(:upTo as bigint) order by id limit :limit`,
    { broadcastId, upTo, limit },
  );
  return rows.map(({ parameters, ...row }) => ({
    ...row,
    parameters: parameters === null ? null : (JSON.parse(parameters) as BodyParameters),
  }));
}

/** The last of the next `size` that have no message; null: all have one. */
export async function endOfNextPart(
  database: Database,
  broadcastId: string,
  size: number,
): Promise<string | null> {
  const next = `select id from broadcast_recipients where broadcast_id = :broadcastId and state = 'pending' order by id limit :size`;
  return await queryValue<string>(database, `select max(id) from (${next}) as part`, { broadcastId, size });
}

/** Locks those of these recipients that get their message now: the others have one, or the broadcast does not run. */
export async function takeRecipients(
  trx: Transaction,
  broadcastId: string,
  ids: readonly string[],
): Promise<Set<string>> {
  const taken = await queryColumn<string>(
    trx,
    `select r.id from broadcast_recipients r join broadcasts b on b.id = r.broadcast_id
      where r.broadcast_id = :broadcastId and r.id = any (:ids::bigint[]) and r.state = 'pending' and b.state = 'running'
      order by r.id for update of r`,
    { broadcastId, ids },
  );
  return new Set(taken);
}

export async function bindRecipients(
  trx: Transaction,
  broadcastId: string,
  bound: readonly { recipientId: string; id: string }[],
): Promise<void> {
  await execute(
    trx,
    `update broadcast_recipients r set state = 'queued', message_id = g.message_id
       from unnest(:recipientId::bigint[], :id::bigint[]) as g (recipient_id, message_id)
      where r.broadcast_id = :broadcastId and r.id = g.recipient_id`,
    { broadcastId, ...columnsOf(bound, 'recipientId', 'id') },
  );
}

/** Their customers want no message. The caller has taken them. */
export async function suppressRecipients(
  trx: Transaction,
  broadcastId: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  const text = `update broadcast_recipients set state = 'suppressed' where broadcast_id = :broadcastId and id = any (:ids::bigint[])`;
  await execute(trx, text, { broadcastId, ids });
}

/** Whether a message of it is to be sent, or to be sent again. */
export async function isUnderWay(database: Database, broadcastId: string): Promise<boolean> {
  return await hasRow(
    database,
    `select 1 from broadcast_recipients r join outbound_messages o on o.message_id = r.message_id
      where r.broadcast_id = :broadcastId and r.state = 'queued' and o.state in ('queued', 'sending')
      order by r.id desc limit 1`,
    { broadcastId },
  );
}

/** SQL: the code of an error that ended a message, of upstream where there is one. */
const ERROR_CODE = `coalesce(substring(f.content from '"errors"[^}]*"code"\\s*:\\s*"?(\\d{1,10})'),
  substring(o.error from '"upstream":\\{.*"code":\\s*"?(\\d{1,10})'), substring(o.error from '^\\{"code":"([a-z_]+)"'))`;

const OPTED_OUT = `o.error like '{"code":"recipient_opted_out"%'`;

/** SQL: how far each of these recipients of a broadcast is; `rows` is SQL. */
function judged(rows: string): string {
  return `select r.id, r.recipient, r.ref, r.message_id, o.created_at,
      case when r.state = 'pending' and b.state = 'cancelled' or sm.cancelled_at is not null then 'cancelled'
           when r.state = 'queued' and r.message_id is null then 'unknown'
           when o.message_id is null or ${OPTED_OUT} then case when r.state = 'pending' then 'pending' else 'suppressed' end
           when o.state in ('queued', 'sending') then 'queued'
           when o.state <> 'accepted' then o.state
           when s.status = 'played' then 'read'
           when s.status in ('delivered', 'read', 'failed') then s.status
           else 'accepted' end as state,
      ${ERROR_CODE} as code
    from (${rows}) as r join broadcasts b on b.id = r.broadcast_id
    left join outbound_messages o on o.message_id = r.message_id
    left join scheduled_messages sm on sm.message_id = r.message_id
    left join message_states s on s.phone_number_id = o.phone_number_id and s.upstream_id = o.upstream_id
    left join message_statuses f on s.status = 'failed' and f.phone_number_id = o.phone_number_id
          and f.upstream_id = o.upstream_id and f.status = 'failed' and f.participant = ''`;
}

const ALL = 'select * from broadcast_recipients where broadcast_id = :broadcastId';

export type RecipientCounts = Record<RecipientState, number> & { failedByCode: Record<string, number> };

export async function countRecipients(database: Database, broadcastId: string): Promise<RecipientCounts> {
  const rows = await query<{ state: RecipientState; code: string | null; n: number }>(
    database,
    `select state, case when state = 'failed' then code end as code, cast(count(*) as integer) as n
       from (${judged(ALL)}) as j group by 1, 2 order by n desc, code`,
    { broadcastId },
  );
  const states = Object.fromEntries(RECIPIENT_STATES.map((state) => [state, 0]));
  const failedByCode: Record<string, number> = {};
  for (const { state, code, n } of rows) {
    states[state] = (states[state] ?? 0) + n;
    if (state === 'failed') failedByCode[code ?? 'unknown'] = n;
  }
  return { ...(states as Record<RecipientState, number>), failedByCode };
}

type Recipient = {
  id: string;
  recipient: string;
  ref: string | null;
  messageId: string | null;
  state: RecipientState;
  /** Of one that failed. */
  code: string | null;
};

export type RecipientWalk = { state: RecipientState | null; afterId: string | null; limit: number };

export type RecipientPage = {
  recipients: Recipient[];
  hasMore: boolean;
  /** Where the next page begins: the last id that was looked at; null when there was none. */
  position: string | null;
};

/** So many are looked at for one page: how far a recipient is, its message says, and no index. */
const MOST_LOOKED_AT = 5_000;

/** Those behind `afterId`, in the order in which they were added. A page may hold fewer than `limit` although there are more. */
export async function listRecipients(
  database: Database,
  broadcastId: string,
  { state, afterId, limit }: RecipientWalk,
): Promise<RecipientPage> {
  // A recipient without a message is found by a separate index.
  const some = `${ALL} ${state === 'pending' ? `and state = 'pending'` : ''}
    and id > coalesce(cast(:afterId as bigint), 0) order by id limit ${MOST_LOOKED_AT}`;
  const found = await query<Recipient>(
    database,
    `select id, recipient, ref, message_id as "messageId", state, case when state = 'failed' then code end as code
       from (${judged(some)}) as j
      where cast(:state as text) is null or state = :state order by id limit :limit`,
    { broadcastId, state, afterId, limit: limit + 1 },
  );
  const recipients = found.slice(0, limit);
  const position = recipients.at(-1)?.id ?? afterId;
  if (found.length > limit) return { recipients, hasMore: true, position };
  const end = await queryValue<string>(
    database,
    `select id from (${some}) as looked offset ${MOST_LOOKED_AT - 1}`,
    { broadcastId, afterId },
  );
  return { recipients, hasMore: end !== null, position: end ?? position };
}

/** What came of the last messages since a time: newest first, at most `limit`; those under way are no outcome. */
export async function lastOutcomes(
  database: Database,
  { broadcastId, since, limit }: { broadcastId: string; since: Date; limit: number },
): Promise<{ state: RecipientState; code: string | null }[]> {
  return await query(
    database,
    `select state, code
       from (${judged(`${ALL} and state = 'queued' and id < coalesce(
               (select p.id from broadcast_recipients p where p.broadcast_id = :broadcastId and p.state = 'pending' order by p.id limit 1),
               9223372036854775807)`)}) as j
      where created_at >= :since and state not in ('queued', 'suppressed', 'cancelled') order by id desc limit :limit`,
    { broadcastId, since, limit },
  );
}
