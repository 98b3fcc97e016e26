import type { AttemptOutcome } from './judge-outcome.ts';

/** What the run of a delivery shows of it: `end` is null while the delivery waits. The run of a dropped one is cancelled. */
export type DeliveryNews = { end: 'delivered' | 'failed' | 'dropped' | null; summary: string };

/** What came of a try to attempt a delivery, for its run. */
export function newsOf(outcome: AttemptOutcome): DeliveryNews {
  return { end: endOf(outcome), summary: summaryOf(outcome) };
}

function endOf(outcome: AttemptOutcome): DeliveryNews['end'] {
  if (outcome.state === 'delivered' || outcome.state === 'failed') return outcome.state;
  // The log no longer has what was erased: it was not delivered. It also forgets what ended months ago.
  return outcome.state === 'settled' ? (outcome.end?.state ?? 'dropped') : null;
}

/** One line for operators. */
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
