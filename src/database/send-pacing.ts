import type { Database, Transaction } from './database.ts';
import { execute, query } from './sql.ts';

/** How often something may happen: once per interval, and `burst` times at once when it has not for long. */
export type Pace = { intervalMs: number; burst: number };

/** What is paced: a phone number, or the pair of it and one recipient. */
export type Paced = { phoneNumberId: string; recipient: string | null };

/**
 * Draws the next free time and returns how far away it is, in ms. Over all processes, because the row counts: it holds
 * the time by which everything drawn so far would be done at one per interval (a generic cell rate algorithm). What is
 * drawn is drawn: the caller keeps it.
 */
export async function drawSendTime(trx: Transaction, paced: Paced, pace: Pace): Promise<number> {
  const { intervalMs, burst } = pace;
  const [row] = await query<{ waitMs: number }>(
    trx,
    `insert into send_pacing as p (phone_number_id, recipient, free_at)
     values (:phoneNumberId, :recipient, clock_timestamp() + :intervalMs * interval '1 millisecond')
     on conflict (phone_number_id, recipient) do update
        set free_at = greatest(p.free_at, clock_timestamp()) + :intervalMs * interval '1 millisecond'
     returning cast(extract(epoch from free_at - clock_timestamp()) * 1000 as double precision) as "waitMs"`,
    { ...keyOf(paced), intervalMs },
  );
  return Math.max(0, (row?.waitMs ?? 0) - intervalMs * burst);
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

/** Deletes what limits nothing any more; for housekeeping. */
export async function forgetSpentPacing(database: Database): Promise<void> {
  await execute(database, `delete from send_pacing where free_at < now() - interval '1 minute'`);
}

function keyOf({ phoneNumberId, recipient }: Paced): { phoneNumberId: string; recipient: string } {
  return { phoneNumberId, recipient: recipient ?? '' };
}
