import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { deleteUpTo, execute, queryOnly } from '../../../platform/postgres/sql.ts';

/** Once per interval, and `burst` times at once after a long rest. */
export type Pace = { intervalMs: number; burst: number };

/** Null: the number as a whole. */
export type Paced = { phoneNumberId: string; recipient: string | null };

export type SendTime = { at: Date; waitMs: number };

/**
 * Over all processes, because the row counts: it holds the time by which everything drawn so far would be done at one per interval (a
 * generic cell rate algorithm). What is drawn is drawn: the caller keeps it.
 */
export async function drawSendTime(trx: Transaction, paced: Paced, pace: Pace): Promise<SendTime> {
  const { intervalMs, burst } = pace;
  const { at, waitMs } = await queryOnly<SendTime>(
    trx,
    `insert into send_pacing as p (phone_number_id, recipient, free_at)
     values (:phoneNumberId, :recipient, clock_timestamp() + :intervalMs * interval '1 millisecond')
     on conflict (phone_number_id, recipient) do update
        set free_at = greatest(p.free_at, clock_timestamp()) + :intervalMs * interval '1 millisecond'
     returning free_at - :aheadMs * interval '1 millisecond' as at,
               cast(extract(epoch from free_at - clock_timestamp()) * 1000 - :aheadMs as double precision) as "waitMs"`,
    { ...keyOf(paced), intervalMs, aheadMs: intervalMs * burst },
  );
  return { at, waitMs: Math.max(0, waitMs) };
}

/** Lets nothing more of `paced` leave for `waitMs`: upstream said that it is too much. */
export async function holdBack(trx: Transaction, paced: Paced, pace: Pace, waitMs: number): Promise<void> {
  const aheadMs = waitMs + pace.intervalMs * (pace.burst - 1);
  await execute(
    trx,
    `insert into send_pacing as p (phone_number_id, recipient, free_at)
     values (:phoneNumberId, :recipient, clock_timestamp() + :aheadMs * interval '1 millisecond')
     on conflict (phone_number_id, recipient) do update set free_at = greatest(p.free_at, excluded.free_at)`,
    { ...keyOf(paced), aheadMs },
  );
}

/** Deletes up to `limit` rows that limit nothing any more; returns how many. */
export async function forgetSpentPacing(database: Database, limit: number): Promise<number> {
  return await deleteUpTo(database, limit, 'send_pacing', `free_at < now() - interval '1 minute'`);
}

function keyOf({ phoneNumberId, recipient }: Paced): { phoneNumberId: string; recipient: string } {
  return { phoneNumberId, recipient: recipient ?? '' };
}

/** One message in 6 seconds to one recipient; 45 at once are borrowed from later. */
export const PAIR_PACE = { intervalMs: 6_000, burst: 45 };

/** Evenly spaced over the second. */
export function evenPace(messagesPerSecond: number): Pace {
  return { intervalMs: 1_000 / messagesPerSecond, burst: 1 };
}

const BURST_SECONDS = 1 / 40;

/**
 * Upstream never counts more than it allows in any second. Of a fast number some may leave together, so that a message does not wait for the one
 * before it, as of a broadcast; what they leave early, the others leave later.
 */
export function numberPace(messagesPerSecond: number): Pace {
  const burst = 1 + Math.floor(messagesPerSecond * BURST_SECONDS);
  return { intervalMs: 1_000 / (messagesPerSecond - burst + 1), burst };
}

/** The pace of a number that holds back longest: the rate counts only from the end of the wait. */
export const HELD_BACK_PACE = numberPace(1 / BURST_SECONDS);

const LONGEST_WAIT_MS = 5 * 60_000;
const FIRST_WAIT_MS = 1_000;

/** How long to wait after the `attempt`-th refusal that passes, in ms: 1, 4, 16, 64, 256 s as upstream advises, ±10 %. */
export function sendRetryDelayMs(attempt: number, retryAfterMs: number | null, random = Math.random): number {
  const scheduledMs = Math.min(FIRST_WAIT_MS * 4 ** Math.min(attempt - 1, 10), LONGEST_WAIT_MS);
  const variedMs = scheduledMs * (0.9 + 0.2 * random());
  return Math.round(Math.max(variedMs, Math.min(retryAfterMs ?? 0, LONGEST_WAIT_MS)));
}
