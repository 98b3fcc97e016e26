import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryColumn } from '../../platform/postgres/sql.ts';
import { messageKey } from './messages.ts';

type NewStatus = {
  phoneNumberId: string;
  upstreamId: string;
  status: string;
  participant: string | null;
  at: Date | null;
  content: string;
};

/**
 * The state of a message moves forward, never back. The message need not be known: state is kept under the upstream id and joined when the
 * message is read. A message whose sending got no answer is recognized by its mark. Everything but what marks lead to is sent at once.
 */
export async function recordStatuses(trx: Transaction, statuses: readonly NewStatus[]): Promise<void> {
  if (statuses.length === 0) return;
  await Promise.all([
    execute(
      trx,
      `insert into message_statuses (phone_number_id, upstream_id, status, participant, at, content)
       select * from unnest(:phoneNumberId::text[], :upstreamId::text[], :status::text[], :participants::text[], :at::timestamptz[], :content::text[])
       on conflict do nothing`,
      {
        ...columnsOf(statuses, 'phoneNumberId', 'upstreamId', 'status'),
        participants: statuses.map((s) => s.participant ?? ''),
        ...columnsOf(statuses, 'at', 'content'),
      },
    ),
    moveStates(trx, statuses.filter(isOfWholeMessage)),
    acceptByStatuses(trx, statuses),
  ]);
}

/** The others of a group may have it: upstream reports the failure of a whole message without a participant. */
function isOfWholeMessage({ participant, status }: NewStatus): boolean {
  return participant === null || status !== 'failed';
}

async function moveStates(
  trx: Transaction,
  statuses: readonly Omit<NewStatus, 'participant' | 'content'>[],
): Promise<void> {
  await execute(
    trx,
    `select move_message_states(:phoneNumberId::text[], :upstreamId::text[], :status::text[], :at::timestamptz[], :status2::text[])`,
    {
      ...columnsOf(statuses, 'phoneNumberId', 'upstreamId', 'status', 'at'),
      status2: statuses.map((s) => statesKept(s.status)),
    },
  );
}

/** States of messages of another responder, known or not yet; statuses of messages that are ours come to us otherwise. */
export async function noteCopiedStates(
  trx: Transaction,
  states: readonly { phoneNumberId: string; upstreamId: string; status: string; at: Date | null }[],
): Promise<void> {
  if (states.length === 0) return;
  const own = await query<{ phoneNumberId: string; upstreamId: string }>(
    trx,
    `select phone_number_id as "phoneNumberId", upstream_id as "upstreamId" from messages
      where (phone_number_id, upstream_id) in (select * from unnest(:phoneNumberId::text[], :upstreamId::text[]))
        and origin is distinct from 'other_responder'`,
    columnsOf(states, 'phoneNumberId', 'upstreamId'),
  );
  const ours = new Set(own.map((row) => messageKey(row.phoneNumberId, row.upstreamId)));
  const copied = states.filter((one) => !ours.has(messageKey(one.phoneNumberId, one.upstreamId)));
  await moveStates(trx, copied);
}

const LADDER = ['accepted', 'sent', 'delivered', 'read', 'played'];

/**
 * The states in which a message stays when this status comes, separated by commas; null when it stays in any. Statuses come late, twice and in
 * any order: the state only moves up sent → delivered → read → played. `failed` is final and can only follow accepted or
 * sent. A status we do not know sets the state where there is none and gives way to any that we know.
 */
export function statesKept(incoming: string): string | null {
  const rank = LADDER.indexOf(incoming === 'failed' ? 'delivered' : incoming);
  return rank === -1 ? null : [...LADDER.slice(rank), 'failed'].join();
}

type MarkedStatus = { phoneNumberId: string; upstreamId: string; content: string };

/**
 * A status that carries our mark proves that upstream has the message: ends what is known of its sending with that,
 * also when the request got no answer, or when another attempt was about to be made.
 */
async function acceptByStatuses(trx: Transaction, statuses: readonly MarkedStatus[]): Promise<void> {
  const marked = new Map<string, MarkedStatus>();
  for (const status of statuses) {
    const messageId = markedMessageId(status.content);
    if (messageId !== null) marked.set(messageId, status);
  }
  if (marked.size === 0) return;
  const ids = await queryColumn<string>(
    trx,
    `update outbound_messages o
        set state = 'accepted', upstream_id = g.upstream_id, error = null, sending_until = null, finished_at = now()
       from unnest(:markeds::bigint[], :phoneNumberIds::text[], :upstreamIds::text[]) as g (message_id, phone_number_id, upstream_id)
      where o.message_id = g.message_id and o.phone_number_id = g.phone_number_id
        and o.state in ('queued', 'sending', 'unknown') and o.attempts > 0
     returning o.message_id`,
    {
      markeds: [...marked.keys()],
      phoneNumberIds: [...marked.values()].map((status) => status.phoneNumberId),
      upstreamIds: [...marked.values()].map((status) => status.upstreamId),
    },
  );
  if (ids.length === 0) return;
  await query(
    trx,
    `update messages m
        set sent_at = coalesce(sent_at, now()), upstream_id = o.upstream_id
       from outbound_messages o
      where m.id = any (:ids::bigint[]) and o.message_id = m.id and m.upstream_id is null
        and not exists (select 1 from messages x
                         where x.phone_number_id = m.phone_number_id and x.upstream_id = o.upstream_id)`,
    { ids },
  );
  for (const id of ids) trx.notify('heliograph_sends', id);
}

const MAX_ID = 2n ** 63n - 1n;
const PREFIX = 'heliograph:';
const IN_STATUS = /"biz_opaque_callback_data"\s*:\s*"heliograph:([1-9]\d{0,18})"/;

/**
 * `biz_opaque_callback_data` of a message whose sender gave none. Upstream repeats it in each status, which tells of a send that got no
 * answer whether it went out.
 */
export function sendMarker(messageId: string): string {
  return PREFIX + messageId;
}

/** Null for a status without our mark. */
export function markedMessageId(statusJson: string): string | null {
  const messageId = IN_STATUS.exec(statusJson)?.[1];
  return messageId === undefined || BigInt(messageId) > MAX_ID ? null : messageId;
}
