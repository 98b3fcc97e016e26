import { maskMessageIds } from '../../../platform/logger.ts';
import { sendErrorAdvice } from './upstream-errors.ts';

/** Kept with the message as JSON. */
export type SendError = {
  /**
   * upstream_refused: upstream's answer is in `upstream`; outcome_unknown: an attempt got no answer; the others say
   * why no attempt was made, or no further one.
   */
  code:
    | 'upstream_refused'
    | 'outcome_unknown'
    | 'upstream_unreachable'
    | 'access_token_missing'
    | 'media_missing'
    | 'recipient_opted_out'
    | 'window_closed'
    | 'template_paused'
    | 'template_disabled'
    | 'template_variables_wrong'
    | 'phone_number_removed'
    | 'too_late'
    | 'cancelled';
  message: string;
  /** Upstream's error object as it came. */
  upstream: Record<string, unknown> | null;
  /** Another responder had the conversation when upstream refused. */
  isOthersThread?: boolean;
};

const TEMPLATE_ADVICE =
  'The message was not sent. GET /api/external/message-templates?refresh=true copies the template as it is now.';

const ADVICE: Readonly<Record<SendError['code'], string | null>> = {
  upstream_refused: null,
  outcome_unknown:
    'The message may have gone out. If it did, its first status will tell; sending it again may send it twice.',
  upstream_unreachable: 'The message was not sent. Send it again later.',
  access_token_missing: 'The operator of the service has to give the WABA a valid access token.',
  media_missing: 'Upload the file again and send the message with its new id.',
  recipient_opted_out: 'The customer ended it while the message waited. It was not sent.',
  window_closed:
    'The message was not sent. Send a template, which needs no open window, or wait for a message of the customer.',
  template_paused: TEMPLATE_ADVICE,
  template_disabled: TEMPLATE_ADVICE,
  template_variables_wrong: TEMPLATE_ADVICE,
  phone_number_removed: 'The message was not sent. Send it from another number.',
  too_late:
    'The message was not sent: its business was suspended, or upstream was away, until after notAfter.',
  cancelled: 'The message was not sent: it was cancelled, or an operator of the service gave it up.',
};

/** Of upstream's own texts, which may quote the recipient. */
const PHONE_NUMBER = /\+?\d{7,}/g;

/** Logs and histories get no phone number and none of upstream's message ids. */
export function sendErrorText({ message }: Pick<SendError, 'message'>): string {
  return maskMessageIds(message).replace(PHONE_NUMBER, '…');
}

export function loggedSendError(error: SendError): {
  code: string;
  message: string;
  upstreamCode: number | null;
} {
  return { code: error.code, message: sendErrorText(error), upstreamCode: upstreamCode(error.upstream) };
}

/** Upstream documents no error for it, so it stands beside the advice for the code. */
const OF_ANOTHER_RESPONDER =
  'Another responder has the conversation, which may be why: send a template, take the conversation if your role may (POST /api/external/conversations/{id}/thread), or wait until it is passed to you or the customer’s last message is 24 hours old.';

function adviceFor({ code, upstream, isOthersThread = false }: SendError): string | null {
  return ADVICE[code] ?? refusalAdvice(upstreamCode(upstream), isOthersThread);
}

/** What to do about a code of upstream's, given whether another responder has the conversation. */
export function refusalAdvice(code: number | null, isOthersThread: boolean): string | null {
  const advice = sendErrorAdvice(code);
  return isOthersThread ? [advice, OF_ANOTHER_RESPONDER].filter(Boolean).join(' ') : advice;
}

function upstreamCode(error: Record<string, unknown> | null): number | null {
  return typeof error?.code === 'number' && Number.isSafeInteger(error.code) ? error.code : null;
}

/** Upstream has no code for what happened on our side. */
const LOCAL_CODE = -1;

export function statusErrorOf({ message, upstream }: SendError): Record<string, unknown> {
  const upstreamText = typeof upstream?.message === 'string' ? upstream.message : message;
  const title = upstreamText.replace(/^\(#\d+\)\s*/, '');
  const data = upstream?.error_data;
  const details =
    typeof data === 'object' && data !== null && 'details' in data && typeof data.details === 'string'
      ? data.details
      : message;
  return { code: upstreamCode(upstream) ?? LOCAL_CODE, title, message: title, error_data: { details } };
}

/** Null when there is no error; advice where there is any. */
export function sendErrorOf(json: string | null): (SendError & { advice: string | null }) | null {
  if (json === null) return null;
  const error = JSON.parse(json) as SendError;
  return { ...error, advice: adviceFor(error) };
}
