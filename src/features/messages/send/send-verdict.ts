import type { SendOutcome, SendRefusal } from '../../../platform/graph/graph-send.ts';
import type { AcceptedMessage } from './outbound-messages.ts';
import type { SendError } from './send-error.ts';
import { sendErrorClass } from './upstream-errors.ts';

export type SendVerdict =
  | ({ kind: 'accepted' } & AcceptedMessage)
  | {
      kind: 'again';
      error: SendError;
      retryAfterMs: number | null;
      /** Whose other messages have to wait as well. */
      holdBack: 'number' | 'pair' | null;
    }
  | { kind: 'failed' | 'unknown'; error: SendError };

const PAIR_LIMIT = 131056;
const NUMBER_LIMITS = new Set([130429, 131057]);
const MAX_UPSTREAM_ERROR_CHARS = 8_192;

/** Only what certainly was not taken is tried again, and that for at most `retryMs` since the message was given to us. */
export function judgeSend(
  outcome: SendOutcome,
  { attempt, ageMs, retryMs }: { attempt: number; ageMs: number; retryMs: number },
): SendVerdict {
  if (outcome.kind === 'accepted') return outcome;
  if (outcome.kind === 'ambiguous') return { kind: 'unknown', error: unknownOutcome(outcome.reason) };
  const error = outcome.kind === 'refused' ? refusalError(outcome) : unreachable(outcome.reason);
  const again = outcome.kind === 'not_sent' || mayPass(outcome, attempt);
  if (!again || ageMs > retryMs) return { kind: 'failed', error };
  if (outcome.kind === 'not_sent') return { kind: 'again', error, retryAfterMs: null, holdBack: null };
  const { code, httpStatus, retryAfterMs } = outcome;
  return { kind: 'again', error, retryAfterMs, holdBack: limitOf(code, httpStatus) };
}

export function unknownOutcome(reason: string): SendError {
  const message = `The upstream platform gave no answer: ${reason}. The message may or may not have gone out.`;
  return { code: 'outcome_unknown', message, upstream: null };
}

function unreachable(reason: string): SendError {
  const message = `The upstream platform could not be reached: ${reason}.`;
  return { code: 'upstream_unreachable', message, upstream: null };
}

function refusalError({ httpStatus, error }: SendRefusal): SendError {
  const isKept = error !== null && JSON.stringify(error).length <= MAX_UPSTREAM_ERROR_CHARS;
  const upstream = isKept ? error : { message: `The upstream platform answered ${httpStatus}.` };
  const text = typeof upstream.message === 'string' ? upstream.message : `It answered ${httpStatus}.`;
  return {
    code: 'upstream_refused',
    message: `The upstream platform refused the message: ${text}`,
    upstream,
  };
}

function mayPass({ code, transient }: SendRefusal, attempt: number): boolean {
  const errorClass = sendErrorClass(code);
  if (errorClass === null) return transient;
  return errorClass === 'retry' || (errorClass === 'once' && attempt === 1);
}

function limitOf(code: number | null, httpStatus: number): 'number' | 'pair' | null {
  if (code === PAIR_LIMIT) return 'pair';
  return httpStatus === 429 || (code !== null && NUMBER_LIMITS.has(code)) ? 'number' : null;
}
