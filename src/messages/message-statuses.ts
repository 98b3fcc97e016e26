import type { Transaction } from '../platform/postgres/database.ts';
import { execute, query } from '../platform/postgres/sql.ts';
import { markedMessageId } from './send-marker.ts';

export type NewStatus = {
  phoneNumberId: string;
  upstreamId: string;
  status: string;
  participant: string | null;
  at: Date | null;
  content: string;
};

export type MessageState = { phoneNumberId: string; upstreamId: string; status: string; at: Date | null };

type StatusSubject = Pick<NewStatus, 'phoneNumberId' | 'upstreamId'>;

/** The present states of the messages that statuses are about, locked until the transaction ends. */
export async function lockMessageStates(
  trx: Transaction,
  statuses: readonly StatusSubject[],
): Promise<MessageState[]> {
  if (statuses.length === 0) return [];
  return await query<MessageState>(
    trx,
    `select phone_number_id as "phoneNumberId", upstream_id as "upstreamId", status, status_at as "at"
       from message_states where (phone_number_id, upstream_id) in (select * from unnest(?::text[], ?::text[]))
        for update`,
    [statuses.map((s) => s.phoneNumberId), statuses.map((s) => s.upstreamId)],
  );
}

/**
 * Records statuses and moves the state of their messages forward, never back. The message
 * need not be known: state is kept under the upstream id and joined when the message is read. A message whose
 * sending got no answer is recognized by its mark. When the locked states are given, everything but what marks lead to
 * is sent at once.
 */
export async function recordStatuses(
  trx: Transaction,
  statuses: readonly NewStatus[],
  current?: readonly MessageState[],
): Promise<void> {
  if (statuses.length === 0) return;
  const after = statesAfter(statuses, current ?? (await lockMessageStates(trx, statuses)));
  await Promise.all([
    execute(
      trx,
      `insert into message_statuses (phone_number_id, upstream_id, status, participant, at, content)
       select * from unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::text[])
       on conflict do nothing`,
      [
        statuses.map((s) => s.phoneNumberId),
        statuses.map((s) => s.upstreamId),
        statuses.map((s) => s.status),
        statuses.map((s) => s.participant ?? ''),
        statuses.map((s) => s.at),
        statuses.map((s) => s.content),
      ],
    ),
    execute(
      trx,
      `insert into message_states (phone_number_id, upstream_id, status, status_at)
       select * from unnest(?::text[], ?::text[], ?::text[], ?::timestamptz[])
       on conflict (phone_number_id, upstream_id) do update
          set status = excluded.status, status_at = excluded.status_at
        where message_states.status <> excluded.status`,
      [
        after.map((s) => s.phoneNumberId),
        after.map((s) => s.upstreamId),
        after.map((s) => s.status),
        after.map((s) => s.at),
      ],
    ),
    acceptByStatuses(trx, statuses),
  ]);
}

function statesAfter(statuses: readonly NewStatus[], current: readonly MessageState[]): MessageState[] {
  const states = new Map(current.map((state) => [`${state.phoneNumberId} ${state.upstreamId}`, state]));
  for (const { phoneNumberId, upstreamId, status, at } of statuses) {
    const key = `${phoneNumberId} ${upstreamId}`;
    const before = states.get(key);
    const after = nextStatus(before?.status ?? null, status);
    if (after !== before?.status) states.set(key, { phoneNumberId, upstreamId, status: after, at });
  }
  return [...states.values()];
}

const RANKS: ReadonlyMap<string, number> = new Map([
  ['accepted', 0],
  ['sent', 1],
  ['delivered', 2],
  ['read', 3],
  ['played', 4],
]);
const SENT_RANK = 1;

/**
 * The state of an outbound message after one more status. Statuses come late, twice and in any order: the state only
 * moves up sent → delivered → read → played. `failed` is final and can only follow accepted or sent. A status we do
 * not know sets the state where there is none and gives way to any that we know.
 */
export function nextStatus(current: string | null, incoming: string): string {
  if (current === null) return incoming;
  if (current === 'failed') return current;
  const currentRank = RANKS.get(current);
  if (incoming === 'failed')
    return currentRank === undefined || currentRank <= SENT_RANK ? incoming : current;
  const incomingRank = RANKS.get(incoming);
  if (incomingRank === undefined) return current;
  return currentRank === undefined || incomingRank > currentRank ? incoming : current;
}

const MAX_ID = 2n ** 63n - 1n;

type MarkedStatus = { phoneNumberId: string; upstreamId: string; content: string };

/**
 * A status that carries our mark proves that upstream has the message: ends what is known of its sending with that,
 * also when the request got no answer, or when another attempt was about to be made.
 */
async function acceptByStatuses(trx: Transaction, statuses: readonly MarkedStatus[]): Promise<void> {
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
