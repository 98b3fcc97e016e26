import type { Database } from '../../../platform/postgres/database.ts';
import { query, queryOne } from '../../../platform/postgres/sql.ts';
import { OPT_OUT_OF_CONVERSATION } from '../../customers/opt-outs.ts';
import type { SendTurn, SendTurnLimits } from './outbound-messages.ts';
import type { SendMessageInput } from './record-send.ts';
import { SCHEDULED, SHARE } from './scheduled-turn.ts';
import { evenPace, numberPace, PAIR_PACE } from './send-pacing.ts';

/** SQL: so many milliseconds, by the name of their binding. */
const ms = (name: string) => `cast(:${name} as double precision) * interval '1 millisecond'`;

/**
 * Draws the turns of messages among the scheduled ones of their number, which leaves in `perSecond`, and in their order; a turn that is still ahead is kept.
 * Returns how long until each, the next first.
 */
export async function drawTurns(
  database: Database,
  { phoneNumberId, perSecond }: { phoneNumberId: string; perSecond: number },
  ids: readonly string[],
): Promise<{ id: string; waitMs: number }[]> {
  if (ids.length === 0) return [];
  return await query(
    database,
    `with without as (
       select message_id, row_number() over (order by message_id) as nth, count(*) over () as n from scheduled_messages
        where message_id = any (:ids::bigint[]) and is_open and (paced_at is null or paced_at < now())),
     drawn as (
       insert into send_pacing as p (phone_number_id, recipient, free_at)
       select :phoneNumberId, :scheduled, clock_timestamp() + count(*) * ${ms('intervalMs')} from without having count(*) > 0
       on conflict (phone_number_id, recipient) do update
          set free_at = greatest(p.free_at, clock_timestamp()) + (select count(*) from without) * ${ms('intervalMs')}
       returning free_at),
     paced as (
       update scheduled_messages sm set paced_at = d.free_at - (w.n - w.nth + 1) * ${ms('intervalMs')}
         from drawn d, without w where sm.message_id = w.message_id
       returning sm.message_id, sm.paced_at)
     select message_id as id, cast(extract(epoch from paced_at - clock_timestamp()) * 1000 as double precision) as "waitMs"
       from (select * from paced
             union all
             select message_id, paced_at from scheduled_messages where message_id = any (:ids::bigint[]) and is_open and paced_at >= now()) as turns
      order by paced_at, message_id`,
    { ids, phoneNumberId, scheduled: SCHEDULED, intervalMs: evenPace(perSecond * SHARE).intervalMs },
  );
}

/** How long after its turn among the scheduled ones a message may wait for its number, which others use too. */
const NUMBER_WITHIN_MS = 1_000;

type Begun = Omit<Extract<SendTurn, { kind: 'send' }>, 'kind' | 'broadcast' | 'upstreamMedia'> & {
  runningSince: Date | null;
  waitMs: number;
};

/**
 * Begins the first attempt of a scheduled message whose turn has come, if nothing at all is in its way; null: `takeSendTurn` says what is. One
 * statement, so that no lock is held while the database is waited for. `waitMs`: until it may leave.
 */
export async function beginAtOnce(
  database: Database,
  { wabaId, messageId }: SendMessageInput,
  { perSecond, timeoutMs, retryMs }: Omit<SendTurnLimits, 'messagesPerSecond'> & { perSecond: number },
): Promise<{ turn: Extract<SendTurn, { kind: 'send' }>; waitMs: number } | null> {
  const row = await queryOne<Begun>(
    database,
    `with ready as (
       select o.message_id, o.phone_number_id, o.recipient, o.upstream_path, sm.send_at, sm.not_after, m.content, m.conversation_id, b.running_since
         from outbound_messages o join scheduled_messages sm on sm.message_id = o.message_id join messages m on m.id = o.message_id
         join conversations c on c.id = m.conversation_id join phone_numbers n on n.phone_number_id = o.phone_number_id
         join wabas w on w.waba_id = o.waba_id join tenants t on t.id = w.tenant_id left join broadcasts b on b.id = sm.broadcast_id
        where o.message_id = :messageId and o.waba_id = :wabaId and o.state = 'queued' and o.attempts = 0
          and o.pair_at is null and o.number_at is null and o.media_ids is null
          and sm.is_open and sm.paced_at is not null and sm.send_at <= (select clock_timestamp())
          and coalesce(sm.not_after, sm.send_at + ${ms('retryMs')}) > (select clock_timestamp())
          and n.removed_at is null and t.suspended_at is null and (sm.broadcast_id is null or b.state = 'running')
          and not exists (${OPT_OUT_OF_CONVERSATION})
          for update of o, sm),
     pair as (
       insert into send_pacing as p (phone_number_id, recipient, free_at)
       select phone_number_id, recipient, clock_timestamp() + ${ms('pairMs')} from ready
       on conflict (phone_number_id, recipient) do update set free_at = greatest(p.free_at, clock_timestamp()) + ${ms('pairMs')}
        where greatest(p.free_at, clock_timestamp()) + ${ms('pairMs')} - ${ms('pairAheadMs')} <= (select clock_timestamp())
       returning phone_number_id),
     number as (
       insert into send_pacing as p (phone_number_id, recipient, free_at)
       select phone_number_id, '', clock_timestamp() + ${ms('numberMs')} from pair
       on conflict (phone_number_id, recipient) do update set free_at = greatest(p.free_at, clock_timestamp()) + ${ms('numberMs')}
        where p.free_at < (select clock_timestamp()) + ${ms('withinMs')}
       returning free_at - ${ms('numberMs')} as at),
     begun as (
       update outbound_messages o
          set state = 'sending', attempts = 1, pair_at = clock_timestamp(), number_at = d.at,
              sending_until = greatest(d.at, clock_timestamp()) + ${ms('timeoutMs')}
         from number d where o.message_id = :messageId returning o.attempts, d.at),
     closed as (
       update scheduled_messages sm set is_open = false from number where sm.message_id = :messageId)
     select g.attempts as attempt, r.phone_number_id as "phoneNumberId", r.conversation_id as "conversationId", r.upstream_path as "upstreamPath",
            r.recipient, r.content as "payloadJson", r.running_since as "runningSince", true as "isScheduled",
            cast(extract(epoch from clock_timestamp() - r.send_at) * 1000 as double precision) as "ageMs",
            cast(extract(epoch from r.not_after - r.send_at) * 1000 as double precision) as "retryMs",
            cast(extract(epoch from g.at - clock_timestamp()) * 1000 as double precision) as "waitMs"
       from begun g, ready r`,
    {
      messageId,
      wabaId,
      timeoutMs,
      retryMs,
      pairMs: PAIR_PACE.intervalMs,
      pairAheadMs: PAIR_PACE.intervalMs * PAIR_PACE.burst,
      numberMs: numberPace(perSecond).intervalMs,
      withinMs: NUMBER_WITHIN_MS,
    },
  );
  if (row === null) return null;
  const { waitMs, runningSince, ...message } = row;
  const broadcast = { runningSince };
  return { turn: { ...message, kind: 'send', upstreamMedia: new Map(), broadcast, isWanted: true }, waitMs };
}
