import { nextStatus } from '../domain/status-rank.ts';
import type { Transaction } from './database.ts';
import { acceptByStatuses } from './send-markers.ts';
import { execute, query } from './sql.ts';

export type NewStatus = {
  phoneNumberId: string;
  upstreamId: string;
  status: string;
  participant: string | null;
  at: Date | null;
  content: string;
};

/**
 * Records statuses and moves the state of their messages forward, never back. The message need not be known:
 * state is kept under the upstream id and joined when the message is read. A message whose sending got no answer is
 * recognized by its mark.
 */
export async function recordStatuses(trx: Transaction, statuses: readonly NewStatus[]): Promise<void> {
  if (statuses.length === 0) return;
  await execute(
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
  );
  await advanceStates(trx, statuses);
  await acceptByStatuses(trx, statuses);
}

type State = { phoneNumberId: string; upstreamId: string; status: string; at: Date | null };

async function advanceStates(trx: Transaction, statuses: readonly NewStatus[]): Promise<void> {
  const current = await query<State>(
    trx,
    `select phone_number_id as "phoneNumberId", upstream_id as "upstreamId", status, status_at as "at"
       from message_states where (phone_number_id, upstream_id) in (select * from unnest(?::text[], ?::text[]))
        for update`,
    [statuses.map((s) => s.phoneNumberId), statuses.map((s) => s.upstreamId)],
  );
  const states = new Map(current.map((state) => [`${state.phoneNumberId} ${state.upstreamId}`, state]));
  for (const { phoneNumberId, upstreamId, status, at } of statuses) {
    const key = `${phoneNumberId} ${upstreamId}`;
    const before = states.get(key);
    const after = nextStatus(before?.status ?? null, status);
    if (after !== before?.status) states.set(key, { phoneNumberId, upstreamId, status: after, at });
  }
  const after = [...states.values()];
  await execute(
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
  );
}
