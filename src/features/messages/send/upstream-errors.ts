/**
 * retry: the same message may pass in a moment; once: try once more; later: it may pass, after hours or a day; fix: something has to be
 * changed first; never: this message to this recipient will not pass; token: the access token.
 */
export type SendErrorClass = 'retry' | 'once' | 'later' | 'fix' | 'never' | 'token';

export type UpstreamError = { code: number; meaning: string; class: SendErrorClass; advice: string };

const BUSY = ['retry', 'The upstream platform is busy; the service tries again by itself.'] as const;
const OUTAGE = ['retry', 'The upstream platform has trouble; the service tries again by itself.'] as const;
const TOKEN = ['token', 'The operator of the service has to give the WABA a valid access token.'] as const;
const PERMISSION = [
  'token',
  'The access token of the WABA lacks a permission; the operator has to grant it.',
] as const;
const TEMPLATE = 'Compare name, language, parameters and their formats with the template as it was approved.';

type Row = readonly [code: number, meaning: string, errorClass: SendErrorClass, advice: string];

const ROWS: readonly Row[] = [
  [0, 'The access token is not valid, or the app cannot use it', ...TOKEN],
  [
    1,
    'Unknown or malformed request',
    'once',
    'Check the message against the upstream platform’s documentation of its type.',
  ],
  [2, 'Upstream is down for a moment', ...OUTAGE],
  [3, 'The app lacks a capability or permission', ...PERMISSION],
  [4, 'The app has made too many calls', ...BUSY],
  [10, 'The permission was not granted or was removed', ...PERMISSION],
  [33, 'The phone number was deleted', 'never', 'The phone number was deleted upstream.'],
  [100, 'A parameter is not valid', 'fix', 'A parameter is not valid; "upstream" says which.'],
  [190, 'The access token has expired', ...TOKEN],
  [
    368,
    'The account is blocked temporarily for violating a policy',
    'never',
    'The account is restricted for policy violations; see the upstream account’s overview.',
  ],
  [
    2046,
    'The transition of the order status is not allowed',
    'fix',
    'The order cannot go from its present status to this one.',
  ],
  [2047, 'The order was paid already', 'fix', 'An order that was paid cannot be cancelled.'],
  [80007, 'The WABA has made too many calls', ...BUSY],
  [130429, 'The number sends faster than its throughput', ...BUSY],
  [
    130472,
    'The recipient is part of an experiment',
    'never',
    'The recipient is part of an upstream experiment and gets no marketing messages.',
  ],
  [
    130497,
    'The account is restricted for this country',
    'never',
    'The account may not write to recipients in this country.',
  ],
  [131000, 'Something went wrong upstream', ...OUTAGE],
  [131005, 'The permission was not granted or was removed', ...PERMISSION],
  [
    131008,
    'A required parameter is missing',
    'fix',
    'A required parameter is missing; "upstream" says which.',
  ],
  [
    131009,
    'The value of a parameter is not valid',
    'fix',
    'A parameter has a wrong value; "upstream" says which.',
  ],
  [131016, 'A service of upstream is unavailable', ...OUTAGE],
  [131021, 'The recipient is the sender', 'never', 'Recipient and sender are the same number.'],
  [
    131026,
    'The message cannot be delivered',
    'never',
    'The recipient is not on WhatsApp, has an old app, or has not accepted its terms of service.',
  ],
  [
    131030,
    'The recipient is not in the allow list of the test number',
    'fix',
    'A test number writes only to recipients in its allow list; add the recipient there.',
  ],
  [131031, 'The account is locked', 'never', 'The account is locked; see the upstream account’s overview.'],
  [
    131036,
    'A No-Storage number gave up the message',
    'later',
    'The message was not delivered in time, and the number stores nothing upstream. Send it again.',
  ],
  [
    131037,
    'The display name is not approved',
    'fix',
    'The display name of the number has to be approved first.',
  ],
  [
    131042,
    'The payment method has a problem',
    'fix',
    'The payment method of the upstream account is missing or has a problem.',
  ],
  [
    131045,
    'The certificate or registration of the number is wrong',
    'fix',
    'The phone number has to be registered again.',
  ],
  [
    131047,
    'The customer service window of 24 hours is closed',
    'never',
    'More than 24 hours have passed since the recipient’s last message: send a template.',
  ],
  [
    131048,
    'The number is limited because of spam',
    'later',
    'Too many messages of this number were blocked or reported. Wait, and see its quality.',
  ],
  [
    131049,
    'Upstream withheld the message, to keep engagement healthy',
    'later',
    'The recipient gets too much marketing at present. Wait at least 24 hours.',
  ],
  [
    131050,
    'The recipient receives no marketing messages from you',
    'never',
    'The recipient has opted out of marketing messages from you.',
  ],
  [
    131051,
    'The type of the message is not supported',
    'fix',
    'The upstream platform does not support this type of message.',
  ],
  [
    131053,
    'The media could not be uploaded',
    'once',
    'The media could not be taken: check its type and size, and that its link can be read.',
  ],
  [
    131055,
    'The template is no marketing template',
    'fix',
    'Only approved marketing templates go to marketing_messages. Send it to messages.',
  ],
  [
    131056,
    'Too many messages from this number to this recipient',
    'retry',
    'Too many messages to this recipient; the service tries again by itself.',
  ],
  [131057, 'The number is in maintenance, for a minute at most', ...OUTAGE],
  [
    131062,
    'A business-scoped user id is not supported here',
    'fix',
    'This message needs a phone number; a business-scoped user id is not enough.',
  ],
  [
    131063,
    'Marketing templates are off for this account',
    'fix',
    'The account takes marketing templates at marketing_messages only: send it there.',
  ],
  [
    131064,
    'Limited because of wrong categories of templates',
    'later',
    'Sending is limited because templates were put into wrong categories. Wait.',
  ],
  [131208, 'Too many messages to groups', ...BUSY],
  [132000, 'The number of parameters differs from the template', 'fix', TEMPLATE],
  [
    132001,
    'The template does not exist in this language',
    'fix',
    'There is no such template in this language, or it has not been approved yet.',
  ],
  [132005, 'The text of the template becomes too long', 'fix', 'A parameter of the template is too long.'],
  [
    132007,
    'The content of the template violates a policy',
    'fix',
    'The content of the template violates an upstream policy.',
  ],
  [132008, 'A value of the template violates a format policy', 'fix', TEMPLATE],
  [132012, 'The format of a parameter differs from the template', 'fix', TEMPLATE],
  [132015, 'The template is paused', 'later', 'The template is paused for low quality; edit it or wait.'],
  [
    132016,
    'The template is disabled',
    'never',
    'The template is disabled for low quality; make another one.',
  ],
  [132018, 'A parameter of the template is not valid', 'fix', TEMPLATE],
  [132068, 'The flow is blocked', 'fix', 'The flow is blocked; correct it.'],
  [132069, 'The flow is throttled', 'later', 'The flow is throttled to 10 messages an hour; wait.'],
  [133004, 'The server is unavailable for a moment', ...OUTAGE],
  [133010, 'The phone number is not registered', 'fix', 'The phone number is not registered upstream.'],
  [133016, 'Too many registrations of the number', ...BUSY],
  [134011, 'The terms for payments are not accepted', 'fix', 'Accept the upstream terms for payments first.'],
  [
    134100,
    'The template is not allowed at marketing_messages',
    'fix',
    'Only approved marketing templates go to marketing_messages. Send it to messages.',
  ],
  [
    134101,
    'Upstream still prepares the template for marketing_messages',
    'retry',
    'Upstream prepares a template for about 10 minutes after it was made, or after 7 days without use; the service tries again by itself.',
  ],
  [
    134102,
    'The template is not eligible for marketing_messages',
    'fix',
    'Finish the onboarding of the account to the Marketing Messages API, or send it to messages.',
  ],
  [
    135000,
    'Upstream does not name the parameter that is wrong',
    'fix',
    'Check the message against the upstream platform’s documentation of its type.',
  ],
  [
    137000,
    'The hash of the identity does not match',
    'fix',
    'The recipient’s identity has changed; read the current hash and send again.',
  ],
  [
    138038,
    'Another responder has the calls of the number',
    'fix',
    'Several responders share the number, and another one has its calls. The business chooses which in Meta Business Suite.',
  ],
  [
    139200,
    'The account may not use Direct Send at present',
    'later',
    'The account may send nothing without a template outside the customer service window at present; upstream says in account_update until when. Send a template.',
  ],
  [2494100, 'The number is in maintenance', ...OUTAGE],
  [
    2494191,
    'The role of your app may not take the conversation',
    'fix',
    'Only the escalation partner may take a conversation. Send a template, or wait until it is passed to you. The business chooses the roles in Meta Business Suite.',
  ],
];

/** A code that is not listed is refused for good. */
export const UPSTREAM_ERRORS: readonly UpstreamError[] = ROWS.map(([code, meaning, errorClass, advice]) => ({
  code,
  meaning,
  advice,
  class: errorClass,
}));

const BY_CODE = new Map(UPSTREAM_ERRORS.map((error) => [error.code, error]));

/** Each of them means a permission that is missing. */
export const PERMISSION_CODES = { first: 200, last: 299 };

export function sendErrorClass(code: number | null): SendErrorClass | null {
  return lookUp(code)?.class ?? null;
}

export function sendErrorAdvice(code: number | null): string | null {
  return lookUp(code)?.advice ?? null;
}

function lookUp(code: number | null): UpstreamError | undefined {
  if (code === null) return undefined;
  const isPermission = code >= PERMISSION_CODES.first && code <= PERMISSION_CODES.last;
  return BY_CODE.get(isPermission ? 10 : code);
}
