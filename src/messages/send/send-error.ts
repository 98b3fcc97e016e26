import { maskMessageIds } from '../../platform/logger.ts';

/** Why a message was not sent, or why that is unknown; kept with it as JSON. */
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
    | 'cancelled';
  /** Public text. */
  message: string;
  /** Upstream's error object as it came. */
  upstream: Record<string, unknown> | null;
};

const ADVICE: Readonly<Record<SendError['code'], string | null>> = {
  upstream_refused: null,
  outcome_unknown:
    'The message may have gone out. If it did, its first status will tell; sending it again may send it twice.',
  upstream_unreachable: 'The message was not sent. Send it again later.',
  access_token_missing: 'The operator of the service has to give the WABA a valid access token.',
  media_missing: 'Upload the file again and send the message with its new id.',
  cancelled: 'An operator of the service gave the message up. It was not sent.',
};

/** Of upstream's own texts, which may quote the recipient. */
const PHONE_NUMBER = /\+?\d{7,}/g;

/** What logs and histories say of it: no phone number and none of upstream's message ids. */
export function sendErrorText({ message }: Pick<SendError, 'message'>): string {
  return maskMessageIds(message).replace(PHONE_NUMBER, '…');
}

/** What a log shows of it. */
export function loggedSendError(error: SendError): {
  code: string;
  message: string;
  upstreamCode: number | null;
} {
  return { code: error.code, message: sendErrorText(error), upstreamCode: upstreamCode(error.upstream) };
}

/** What a tenant can do about it; null when unknown. */
export function adviceFor({ code, upstream }: SendError): string | null {
  return ADVICE[code] ?? sendErrorAdvice(upstreamCode(upstream));
}

/** The `code` of an upstream error object; null when there is none. */
function upstreamCode(error: Record<string, unknown> | null): number | null {
  return typeof error?.code === 'number' && Number.isSafeInteger(error.code) ? error.code : null;
}

/** Upstream has no code for what happened on our side. */
const LOCAL_CODE = -1;

/** The error as the `errors[]` of an upstream status say such things. */
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

/**
 * What to do about an error that upstream gives for a message.
 * retry: the same message may pass in a moment; once: try once more; later: it may pass, after hours or a day;
 * fix: something has to be changed first; never: this message to this recipient will not pass; token: the access token.
 */
type SendErrorClass = 'retry' | 'once' | 'later' | 'fix' | 'never' | 'token';

type SendErrorCode = { readonly class: SendErrorClass; readonly advice: string };

const entry = (errorClass: SendErrorClass, advice: string): SendErrorCode => ({ class: errorClass, advice });

const BUSY = entry('retry', 'The upstream platform is busy; the service tries again by itself.');
const OUTAGE = entry('retry', 'The upstream platform has trouble; the service tries again by itself.');
const TOKEN = entry('token', 'The operator of the service has to give the WABA a valid access token.');
const PERMISSION = entry(
  'token',
  'The access token of the WABA lacks a permission; the operator has to grant it.',
);
const TEMPLATE = 'Compare name, language, parameters and their formats with the template as it was approved.';

/** By upstream's `code`. What is not listed is refused for good. */
const CODES: ReadonlyMap<number, SendErrorCode> = new Map([
  [0, TOKEN],
  [1, entry('once', 'Check the message against the upstream platform’s documentation of its type.')],
  [2, OUTAGE],
  [3, PERMISSION],
  [4, BUSY],
  [10, PERMISSION],
  [33, entry('never', 'The phone number was deleted upstream.')],
  [100, entry('fix', 'A parameter is not valid; "upstream" says which.')],
  [190, TOKEN],
  [
    368,
    entry('never', 'The account is restricted for policy violations; see the upstream account’s overview.'),
  ],
  [80007, BUSY],
  [130429, BUSY],
  [130472, entry('never', 'The recipient is part of an upstream experiment and gets no marketing messages.')],
  [130497, entry('never', 'The account may not write to recipients in this country.')],
  [131000, OUTAGE],
  [131005, PERMISSION],
  [131008, entry('fix', 'A required parameter is missing; "upstream" says which.')],
  [131009, entry('fix', 'A parameter has a wrong value; "upstream" says which.')],
  [131016, OUTAGE],
  [131021, entry('never', 'Recipient and sender are the same number.')],
  [
    131026,
    entry(
      'never',
      'The recipient is not on WhatsApp, has an old app, or has not accepted its terms of service.',
    ),
  ],
  [
    131030,
    entry('fix', 'A test number writes only to recipients in its allow list; add the recipient there.'),
  ],
  [131031, entry('never', 'The account is locked; see the upstream account’s overview.')],
  [131037, entry('fix', 'The display name of the number has to be approved first.')],
  [131042, entry('fix', 'The payment method of the upstream account is missing or has a problem.')],
  [131045, entry('fix', 'The phone number has to be registered again.')],
  [
    131047,
    entry('never', 'More than 24 hours have passed since the recipient’s last message: send a template.'),
  ],
  [
    131048,
    entry('later', 'Too many messages of this number were blocked or reported. Wait, and see its quality.'),
  ],
  [131049, entry('later', 'The recipient gets too much marketing at present. Wait at least 24 hours.')],
  [131050, entry('never', 'The recipient has opted out of marketing messages from you.')],
  [131051, entry('fix', 'The upstream platform does not support this type of message.')],
  [
    131053,
    entry('once', 'The media could not be taken: check its type and size, and that its link can be read.'),
  ],
  [131056, entry('retry', 'Too many messages to this recipient; the service tries again by itself.')],
  [131057, OUTAGE],
  [131062, entry('fix', 'This message needs a phone number; a business-scoped user id is not enough.')],
  [131063, entry('fix', 'Marketing templates are switched off for this account.')],
  [131064, entry('later', 'Sending is limited because templates were put into wrong categories. Wait.')],
  [131208, BUSY],
  [132000, entry('fix', TEMPLATE)],
  [132001, entry('fix', 'There is no such template in this language, or it has not been approved yet.')],
  [132005, entry('fix', 'A parameter of the template is too long.')],
  [132007, entry('fix', 'The content of the template violates an upstream policy.')],
  [132008, entry('fix', TEMPLATE)],
  [132012, entry('fix', TEMPLATE)],
  [132015, entry('later', 'The template is paused for low quality; edit it or wait.')],
  [132016, entry('never', 'The template is disabled for low quality; make another one.')],
  [132018, entry('fix', TEMPLATE)],
  [132068, entry('fix', 'The flow is blocked; correct it.')],
  [132069, entry('later', 'The flow is throttled to 10 messages an hour; wait.')],
  [133004, OUTAGE],
  [133010, entry('fix', 'The phone number is not registered upstream.')],
  [133016, BUSY],
  [134011, entry('fix', 'Accept the upstream terms for payments first.')],
  [135000, entry('fix', 'Check the message against the upstream platform’s documentation of its type.')],
  [137000, entry('fix', 'The recipient’s identity has changed; read the current hash and send again.')],
  [2046, entry('fix', 'The order cannot go from its present status to this one.')],
  [2047, entry('fix', 'An order that was paid cannot be cancelled.')],
  [2494100, OUTAGE],
]);

const PERMISSION_CODES = { first: 200, last: 299 };

/** The class of an upstream error code; null for codes that are not known. */
export function sendErrorClass(code: number | null): SendErrorClass | null {
  return lookUp(code)?.class ?? null;
}

/** What a tenant can do about an upstream error; null for codes that are not known. */
export function sendErrorAdvice(code: number | null): string | null {
  return lookUp(code)?.advice ?? null;
}

function lookUp(code: number | null): SendErrorCode | undefined {
  if (code === null) return undefined;
  const isPermission = code >= PERMISSION_CODES.first && code <= PERMISSION_CODES.last;
  return CODES.get(code) ?? (isPermission ? PERMISSION : undefined);
}
