import { NO_SUCH_NUMBER } from '../../features/accounts/accounts.ts';
import { SEND_REFUSALS } from '../../features/messages/send/send-refusals.ts';
import { DELIVERY_ERROR_CODES } from './delivery-error-codes.ts';
import { PLATFORM_ERROR_CODES } from './platform-error-codes.ts';
import { SENDING_ERROR_CODES } from './sending-error-codes.ts';

/** Every error code of the HTTP API: the one list behind the responses and the page /docs/errors. */

type ErrorType =
  | 'authentication_error'
  | 'invalid_request_error'
  | 'rate_limit_error'
  | 'upstream_error'
  | 'api_error';

type ErrorCodeDefinition = {
  readonly status: number;
  readonly type: ErrorType;
  /** What the answer says unless the place that raises it knows better. */
  readonly message: string;
  readonly advice: string;
};

/** The status gives the type, unless it is named. */
type DescribedCode = Omit<ErrorCodeDefinition, 'type'> & { readonly type?: ErrorType };

const CODES = {
  invalid_api_key: {
    status: 401,
    message: 'The request carries no valid API key.',
    advice:
      'Send the header "Authorization: Bearer <API key>". The key is missing, malformed, unknown or revoked. The message says when there is no such header; of a key it does not say which.',
  },
  expired_api_key: {
    status: 401,
    message: 'The API key has expired.',
    advice: 'Ask for a new key and use it instead.',
  },
  ip_not_allowed: {
    status: 403,
    message: 'The API key may not be used from this address.',
    advice:
      'The key has a list of networks: use it from one of them, or have the list changed in the portal.',
  },
  insufficient_scope: {
    status: 403,
    message: 'The API key lacks a scope.',
    advice:
      'The message names the scope. Use a key that has it; GET /api/external/key shows the scopes of a key.',
  },
  recipient_not_open: {
    status: 403,
    message: 'The API key may not send to this recipient.',
    advice:
      'The key may only send to conversations whose customer service window is open: the customer, or one of the group, wrote within 24 hours. Nothing was sent or counted. Ask the operator for another key if it has to send to others.',
  },
  recipient_opted_out: {
    status: 422,
    message: 'The customer wants no such messages.',
    advice:
      'Nothing was sent, stored or counted. optOut says since when and by which report. One that upstream reported ends when the customer resumes in WhatsApp; POST /api/external/opt-outs/end ends one that a word, your API or your team noted.',
  },
  unknown_opt_out: {
    status: 404,
    message: 'The customer has no opt-out.',
    advice: 'POST /api/external/opt-outs/search shows those that there are.',
  },
  opt_out_of_upstream: {
    status: 409,
    message: 'The opt-out was reported by upstream.',
    advice:
      'It ends when the customer resumes marketing messages of the number in WhatsApp. Nothing was changed.',
  },
  invalid_signature: {
    status: 401,
    message: 'The X-Hub-Signature-256 header does not match the body.',
    advice:
      'Concerns POST /upstream/webhook only. The app secret of the upstream app and the one in the settings differ, or something on the way changed the body.',
  },
  media_url_expired: {
    status: 403,
    message: 'The URL of this file has expired.',
    advice:
      'Concerns GET /received_media/… only. Ask GET /api/external/messages/{id}/media for a fresh "mediaUrl". The installation or your business sets how long it is valid.',
  },
  invalid_media_signature: {
    status: 403,
    message: 'The signature of this address is missing or wrong.',
    advice:
      'Concerns GET /received_media/… only. Use "mediaUrl" exactly as it was given, with its query; URLs from before they were signed are no longer valid. GET /api/external/messages/{id}/media gives a fresh one.',
  },
  verification_failed: {
    status: 403,
    message: 'The verification token does not match.',
    advice:
      'Concerns GET /upstream/webhook only. Enter the verify token of the settings in the upstream app.',
  },
  invalid_parameter: {
    status: 400,
    message: 'A parameter is not valid.',
    advice:
      '"param" names the parameter, and "message" describes the valid values. Unknown parameters are refused.',
  },
  invalid_cursor: {
    status: 400,
    message: 'The cursor is not valid for this list.',
    advice:
      'Pass "nextCursor" of the previous page, unchanged, to the same path with the same filters and a key of the same WABA; or start again without a cursor.',
  },
  invalid_request: {
    status: 400,
    message: 'The request is malformed.',
    advice: 'Check the spelling of the URL (percent-encoding) and the headers.',
  },
  invalid_json: {
    status: 400,
    message: 'The body is not valid JSON.',
    advice: 'Send one JSON value in UTF-8.',
  },
  not_found: {
    status: 404,
    message: 'There is no such object.',
    advice: 'The id is unknown, or the object belongs to another WABA than the API key.',
  },
  route_not_found: {
    status: 404,
    message: 'There is nothing at this path.',
    advice: 'Check the path.',
  },
  method_not_allowed: {
    status: 405,
    message: 'This path does not support the method.',
    advice: 'The message and the header Allow list the methods that the path supports.',
  },
  erased: {
    status: 410,
    message: 'The file was erased, or is past the time for which the business keeps files.',
    advice: 'The file was deleted permanently. Do not request it again.',
  },
  unknown_customer: {
    status: 422,
    message: 'The WABA has no such customer.',
    advice: 'Nothing was erased: the customer is unknown, or was erased before.',
  },
  unknown_conversation: {
    status: 422,
    message: 'The WABA has no such conversation.',
    advice: 'Nothing was erased: the conversation is unknown, or was erased before.',
  },
  request_timeout: {
    status: 408,
    message: 'The request did not arrive in time.',
    advice: 'Send it again; check the network between you and the service.',
  },
  body_too_large: {
    status: 413,
    message: 'The request body is too large.',
    advice: 'Send a smaller body.',
  },
  storage_quota_exceeded: {
    status: 413,
    message: 'The stored files of the business have reached their quota.',
    advice:
      'GET /api/external/usage shows the quota. Delete uploaded files that you no longer send, wait until files expire, or ask the operator for more.',
  },
  upload_quota_exceeded: {
    status: 429,
    message: 'The uploads of this day have reached their quota.',
    advice:
      'GET /api/external/usage shows the quota. "Retry-After" gives the seconds until the next day (UTC); or ask the operator for more.',
  },
  message_limit_reached: {
    status: 429,
    message: 'The API key has reached its limit of messages on one day.',
    advice:
      'Nothing was sent. "Retry-After" gives the seconds until the next day (UTC); or ask the operator for a higher limit.',
  },
  unsupported_media_type: {
    status: 415,
    message: 'Send the body as JSON with "Content-Type: application/json", a file as multipart/form-data.',
    advice:
      'Send JSON with the header "Content-Type: application/json", in UTF-8 and not compressed; files as multipart/form-data.',
  },
  waiting_choice_required: {
    status: 409,
    message: 'The endpoint has pending deliveries. Choose "send" or "drop".',
    advice:
      'Send "waiting": "send" to send the pending deliveries first, in order, or "drop" to drop them permanently. A replay can send dropped deliveries.',
  },
  secret_in_use: {
    status: 409,
    message: 'The endpoint has this secret already.',
    advice: 'Nothing was changed. Leave the secret out to have a new one made.',
  },
  no_signing_key: {
    status: 409,
    message: 'The endpoint has no private key for signatures.',
    advice: 'Set "asymmetricSignature" of the endpoint to "ed25519" first; a key is made then.',
  },
  url_not_verified: {
    status: 422,
    message: 'The URL could not be verified.',
    advice:
      'The server must respond to a GET with hub.verify_token with status 200 and the value of hub.challenge as its body.',
  },
  url_is_webhook_endpoint: {
    status: 409,
    message: 'A webhook endpoint has this URL.',
    advice: 'Use a different URL: alerts must not go to a webhook endpoint.',
  },
  no_operations_url: {
    status: 409,
    message: 'There is no operations URL.',
    advice: 'Set one with PUT /api/external/operations-url; the response contains its secret.',
  },
  too_many_endpoints: {
    status: 409,
    message: 'The WABA has reached its limit of webhook endpoints.',
    advice: 'Change one of those you have, or delete one first.',
  },
  nothing_to_replay: {
    status: 409,
    message: 'There is nothing to send again in this selection.',
    advice:
      'A replay skips pending deliveries, deleted endpoints, and events that an endpoint never received. "dryRun": true counts the selected and the skipped deliveries.',
  },
  ...DELIVERY_ERROR_CODES,
  ...PLATFORM_ERROR_CODES,
  too_many_replays: {
    status: 409,
    message: 'Too many replays are unfinished.',
    advice: 'Wait for one of them, or cancel it.',
  },
  replay_finished: {
    status: 409,
    message: 'The replay is finished.',
    advice: 'Start another one.',
  },
  replay_too_large: {
    status: 422,
    message: 'The selection is too large for one replay.',
    advice: 'Narrow the selection, for example by time, and start several replays.',
  },
  invalid_url: {
    status: 422,
    message: 'Webhooks cannot be sent to this URL.',
    advice:
      'Use an https URL of a server that can be reached from the Internet; "message" names the problem.',
  },
  unknown_phone_number: {
    status: 422,
    message: NO_SUCH_NUMBER,
    advice: 'Use a phoneNumberId returned by GET /me.',
  },
  unknown_endpoint: {
    status: 422,
    message: 'There is no such webhook endpoint.',
    advice: 'Use an id returned by GET /api/external/webhook-endpoints.',
  },
  unknown_delivery: {
    status: 422,
    message: 'There is no such delivery.',
    advice: 'Use delivery ids returned by GET /api/external/events/:id.',
  },
  unknown_media: {
    status: 422,
    message: SEND_REFUSALS.unknown_media,
    advice: 'Use an id returned by POST /api/external/media, and a key of the same WABA.',
  },
  media_expired: {
    status: 422,
    message: SEND_REFUSALS.media_expired,
    advice: 'Upload it again: files are kept for 30 days.',
  },
  wrong_media_type: {
    status: 422,
    message: 'The uploaded file cannot be sent as this type.',
    advice: 'Send it as the "mediaType" returned by POST /api/external/media.',
  },
  unsupported_file_type: {
    status: 422,
    message: 'The upstream platform does not accept files of this type.',
    advice:
      'The message lists the types, or says that the file has a different one. Give the correct type in the field "type", before the file, or as the Content-Type of the part.',
  },
  file_too_large: {
    status: 413,
    message: 'The file is too large.',
    advice:
      'Images have up to 5 MiB, audio and video 16 MiB, documents 100 MiB, stickers 100 KiB or, when animated, 500 KiB.',
  },
  invalid_multipart: {
    status: 400,
    message: 'The body is not complete multipart/form-data.',
    advice: 'Check the boundary, and that the Content-Length is that of the body. Nothing was stored.',
  },
  too_many_uploads: {
    status: 429,
    message: 'Too many files are being uploaded at a time.',
    advice: 'Upload a few files at a time, and try again after the time in the header Retry-After.',
  },
  too_many_streams: {
    status: 429,
    message: 'Too many streams of events are open at a time.',
    advice:
      'A key has 5 streams at a time, and a business 20. Close one, or try again after the time in the header Retry-After.',
  },
  ...SENDING_ERROR_CODES,
  upstream_refused: {
    status: 424,
    message: 'The upstream platform refused the request.',
    advice:
      'The member "upstream" contains the unchanged error of the upstream platform, and "advice" the solution where one is known. Nothing was sent.',
  },
  access_token_missing: {
    status: 424,
    message: 'The WABA has no usable upstream access token.',
    advice: 'The operator of the service has to give the WABA a valid access token.',
  },
  upstream_unavailable: {
    status: 503,
    type: 'upstream_error',
    message: 'The upstream platform does not answer at the moment.',
    advice:
      'Try again after the time in the header Retry-After. The member "upstream" contains the upstream platform’s error when there is one.',
  },
  outcome_unknown: {
    status: 502,
    type: 'upstream_error',
    message: 'The upstream platform gave no answer. It may have done it, or not.',
    advice:
      'The service does not repeat the call. Wait for the next report of upstream before you repeat it.',
  },
  message_not_sent: {
    status: 424,
    message: 'The message could not be sent.',
    advice: 'The message says why. Nothing was sent: fix the cause, then send it again.',
  },
  rate_limit_exceeded: {
    status: 429,
    message: 'Too many requests.',
    advice:
      'Wait for the seconds in the header Retry-After. RateLimit-Remaining in every response shows how many requests are left in the window; attempts with keys that are not valid are limited by address.',
  },
  headers_too_large: {
    status: 431,
    message: 'The URL and headers of the request are too large.',
    advice: 'Keep URL and headers below 16 KiB together.',
  },
  internal_error: {
    status: 500,
    message: 'Something went wrong on our side.',
    advice:
      'Try again. If it persists, send the request id to the operator, who can find the cause in the log.',
  },
  service_unavailable: {
    status: 503,
    message: 'The service cannot answer at the moment.',
    advice: 'Try again after the time in the header Retry-After.',
  },
} satisfies Record<string, DescribedCode>;

export type ErrorCode = keyof typeof CODES;

export const ERROR_CODES = Object.fromEntries(
  Object.entries<DescribedCode>(CODES).map(([code, described]) => [
    code,
    { type: typeOf(described.status), ...described },
  ]),
) as Readonly<Record<ErrorCode, ErrorCodeDefinition>>;

function typeOf(status: number): ErrorType {
  if (status === 401 || status === 403) return 'authentication_error';
  if (status === 429) return 'rate_limit_error';
  if (status === 424) return 'upstream_error';
  return status < 500 ? 'invalid_request_error' : 'api_error';
}
