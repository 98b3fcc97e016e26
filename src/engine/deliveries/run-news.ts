import type { WaitingDelivery } from '../queue/claim-one.ts';
import type { AttemptOutcome } from './judge-outcome.ts';

/** A delivery as its run shows it: `end` is null while the delivery waits. The run of a dropped one is cancelled. */
export type DeliveryNews = { end: 'delivered' | 'failed' | 'dropped' | null; summary: string };

export function newsOf(outcome: AttemptOutcome): DeliveryNews {
  return { end: endOf(outcome), summary: summaryOf(outcome) };
}

function endOf(outcome: AttemptOutcome): DeliveryNews['end'] {
  if (outcome.state === 'delivered' || outcome.state === 'failed') return outcome.state;
  // The log no longer has what was erased: it was not delivered. It also forgets what ended months ago.
  return outcome.state === 'settled' ? (outcome.end?.state ?? 'dropped') : null;
}

function summaryOf(outcome: AttemptOutcome): string {
  switch (outcome.state) {
    case 'delivered':
      return `Delivered with ${outcome.statusCode} at attempt ${outcome.attempt}.`;
    case 'failed':
      return `Failed permanently after attempt ${outcome.attempt}: ${outcome.reason}.`;
    case 'retrying':
      return `Attempt ${outcome.attempt}: ${outcome.reason}. Next at ${timeAfter(outcome.delayMs)}.`;
    case 'deferred':
      return `Attempt ${outcome.attempt}: ${outcome.reason}. It waits until the endpoint takes deliveries again.`;
    case 'waiting':
      return `Waiting: ${outcome.reason}. Next look at ${timeAfter(outcome.delayMs)}.`;
    case 'settled':
      return settledSummary(outcome.end);
  }
}

function settledSummary(end: Extract<AttemptOutcome, { state: 'settled' }>['end']): string {
  if (end === null) return 'The delivery log no longer has it: its event was erased, or it ended long ago.';
  if (end.state === 'delivered')
    return `Delivered with ${end.statusCode ?? 'a 2xx'} at attempt ${end.attempts}.`;
  const reason = end.error ?? 'no reason is recorded';
  if (end.state === 'failed') return `Failed permanently after attempt ${end.attempts}: ${reason}.`;
  return `Dropped after ${end.attempts} attempts: ${reason}.`;
}

function timeAfter(delayMs: number): string {
  return new Date(Date.now() + delayMs).toISOString();
}

/** Of an attempt that was not made or not recorded: the next look finds out. */
export const LOOK_AGAIN = { state: 'waiting', reason: 'the attempt was not made', delayMs: 1_000 } as const;

/** The loop of this process claims nothing at present: it stops, or attempts cannot be recorded. */
export const NOT_CLAIMING = {
  state: 'waiting',
  reason: 'this worker attempts nothing at present',
  delayMs: 5_000,
} as const;

/** The delivery is due: the loop attempts it when its endpoint has room. */
export const AT_LIMIT = {
  state: 'waiting',
  reason: 'its endpoint has no room at present',
  delayMs: 5_000,
} as const;

/** When a run looks again at what waits for something else than time; its end is reported to it earlier. */
const LOOK_MS = { underWay: 5_000, due: 10_000, probing: 60_000, off: 600_000 };

/** Why a delivery cannot be attempted now, and when its run looks again. */
export function waitOf({ state, mode, ...waiting }: WaitingDelivery): AttemptOutcome {
  const aside = waiting.steppedAsideAt?.toISOString();
  const note = aside === undefined ? '' : `; stepped aside at ${aside}: later events of its key go on`;
  const wait = (reason: string, delayMs: number) =>
    ({ state: 'waiting', reason: `${reason}${note}`, delayMs: Math.max(1, Math.round(delayMs)) }) as const;
  if (state === 'claimed') return wait('an attempt is under way', LOOK_MS.underWay);
  const failure = waiting.lastError === null ? '' : ` (${waiting.lastError})`;
  if (state === 'retrying' && mode === 'open')
    return wait(waiting.lastError ?? 'not due yet', waiting.waitMs ?? LOOK_MS.due);
  if (mode === 'probing')
    return wait(
      `the endpoint is probing${failure}`,
      Math.max(LOOK_MS.probing, waiting.probeMs ?? LOOK_MS.off) + LOOK_MS.underWay,
    );
  if (mode !== 'open') return wait(`the endpoint is ${mode}${failure}`, LOOK_MS.off);
  return wait(state === 'due' ? 'its turn comes' : `it is ${state}`, LOOK_MS.due);
}
