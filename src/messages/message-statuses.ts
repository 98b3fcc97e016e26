import type { Transaction } from '../platform/postgres/database.ts';
import { execute, query } from '../platform/postgres/sql.ts';
import { acceptByStatuses } from './send/send-markers.ts';
import { nextStatus } from './status-rank.ts';

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
