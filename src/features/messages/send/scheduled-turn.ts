import type { Transaction } from '../../../platform/postgres/database.ts';
import { execute, queryOne } from '../../../platform/postgres/sql.ts';
import { cancelOpen } from './scheduled-messages.ts';
import type { SendError } from './send-error.ts';
import { drawSendTime, evenPace } from './send-pacing.ts';

/** Why a scheduled message is not sent now; `retryMs`: how long it may be tried; null: as long as any message. */
type Held =
  | { kind: 'wait'; waitMs: number; reason: string }
  | { kind: 'ended'; error: SendError }
  /** Its broadcast was cancelled, and it with it. */
  | { kind: 'over'; state: 'failed' }
  | { kind: 'free'; retryMs: number | null; broadcast: { runningSince: Date | null } };

type Schedule = {
  isOpen: boolean;
  sendInMs: number;
  lastInMs: number | null;
  retryMs: number | null;
  pacedInMs: number | null;
  isSuspended: boolean;
  isNumberRemoved: boolean;
  /** Of its broadcast; null: it is of none. */
  broadcastState: string | null;
  runningSince: Date | null;
};

/** The scheduled messages of a number, and those of broadcasts, share this part of its pace, so that others go on beside them. */
export const SHARE = 0.7;

/** The row of their pace; no recipient has this name. */
export const SCHEDULED = '*';

const SUSPENSION_LOOK_MS = 60_000;
const PAUSE_LOOK_MS = 5_000;

/** What is not scheduled leaves at once. */
export const NOT_HELD = { kind: 'free', retryMs: null, broadcast: { runningSince: null } } as const;

type Message = { messageId: string; phoneNumberId: string };

/**
 * What the schedule of a message says at its turn; `retryMs` how long any message is tried. The caller has locked the message, and a move of
 * it may have been waited for: the schedule is read after that.
 */
export async function heldBySchedule(
  trx: Transaction,
  { messageId, phoneNumberId }: Message,
  { retryMs, messagesPerSecond }: { retryMs: number; messagesPerSecond: number },
): Promise<Held> {
  const schedule = await readSchedule(trx, messageId);
  if (schedule === null) return NOT_HELD;
  const { sendInMs, lastInMs, isSuspended, broadcastState, runningSince } = schedule;
  const free: Held = { kind: 'free', retryMs: schedule.retryMs, broadcast: { runningSince } };
  if (schedule.isOpen && broadcastState === 'cancelled') {
    await cancelOpen(trx, 'message_id = :messageId', { messageId });
    return { kind: 'over', state: 'failed' };
  }
  if (schedule.isOpen && broadcastState === 'paused')
    return wait(PAUSE_LOOK_MS, 'its broadcast, which is paused');
  if (sendInMs > 0) return wait(sendInMs, 'its time');
  if (schedule.isNumberRemoved) return ended('phone_number_removed', 'The number was removed.');
  const leftMs = lastInMs ?? sendInMs + retryMs;
  if (leftMs <= 0) return ended('too_late', 'The time after which it is not sent has passed.');
  if (isSuspended)
    return wait(Math.min(SUSPENSION_LOOK_MS, leftMs), 'the end of the suspension of its business');
  if (!schedule.isOpen) return free;
  const pacedInMs =
    schedule.pacedInMs ?? (await drawTurn(trx, { messageId, phoneNumberId }, messagesPerSecond));
  if (pacedInMs > 0) return wait(pacedInMs, 'the scheduled messages of its number before it');
  return free;
}

function wait(waitMs: number, reason: string): Held {
  return { kind: 'wait', waitMs: Math.ceil(waitMs), reason };
}

function ended(code: SendError['code'], message: string): Held {
  return { kind: 'ended', error: { code, message, upstream: null } };
}

async function readSchedule(trx: Transaction, messageId: string): Promise<Schedule | null> {
  const untilMs = (column: string) =>
    `cast(extract(epoch from ${column} - clock_timestamp()) * 1000 as double precision)`;
  return await queryOne<Schedule>(
    trx,
    `select sm.is_open as "isOpen", ${untilMs('sm.send_at')} as "sendInMs", ${untilMs('sm.not_after')} as "lastInMs",
            cast(extract(epoch from sm.not_after - sm.send_at) * 1000 as double precision) as "retryMs",
            ${untilMs('sm.paced_at')} as "pacedInMs", t.suspended_at is not null as "isSuspended",
            n.removed_at is not null as "isNumberRemoved", b.state as "broadcastState", b.running_since as "runningSince"
       from scheduled_messages sm join phone_numbers n on n.phone_number_id = sm.phone_number_id
       join wabas w on w.waba_id = sm.waba_id join tenants t on t.id = w.tenant_id
       left join broadcasts b on b.id = sm.broadcast_id
      where sm.message_id = :messageId`,
    { messageId },
  );
}

async function drawTurn(trx: Transaction, { messageId, phoneNumberId }: Message, perSecond: number) {
  const { at, waitMs } = await drawSendTime(
    trx,
    { phoneNumberId, recipient: SCHEDULED },
    evenPace(perSecond * SHARE),
  );
  const text = 'update scheduled_messages set paced_at = :at where message_id = :messageId';
  await execute(trx, text, { at, messageId });
  return waitMs;
}
