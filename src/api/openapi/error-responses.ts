import { type ErrorBody, errorBody } from '../errors/api-error.ts';
import { ERROR_CODES, type ErrorCode } from '../errors/error-codes.ts';

type Json = Record<string, unknown>;

const EXAMPLE_REQUEST_ID = 'req_0f3c2a9d5b7e4816a0c4d2e1';

/** Every error answer has this shape; `code` is one of the registry. */
export const ERROR_SCHEMA = {
  title: 'Error',
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['type', 'code', 'message', 'param', 'docUrl', 'requestId'],
      properties: {
        type: { type: 'string', enum: [...new Set(Object.values(ERROR_CODES).map(({ type }) => type))] },
        code: { $ref: '#/components/schemas/ErrorCode' },
        message: { type: 'string', description: 'For people; it may change.' },
        param: { type: ['string', 'null'], description: 'The parameter or member that is wrong.' },
        docUrl: { type: 'string', format: 'uri', description: 'Where the code is explained.' },
        requestId: { type: 'string', description: 'As in the header X-Request-Id.' },
        advice: { type: 'string', description: 'What to do about it, where the code alone does not tell.' },
        serviceMessageId: { type: 'string', description: 'The message that was not sent.' },
        upstream: { type: 'object', description: 'The upstream platform’s error as it came.' },
        warnings: {
          type: 'array',
          description: 'The members of the message that the service does not know and passed on as they are.',
          items: {
            type: 'object',
            required: ['param', 'message'],
            properties: { param: { type: 'string' }, message: { type: 'string' } },
          },
        },
      },
    },
  },
};

export const ERROR_CODE_SCHEMA = {
  title: 'ErrorCode',
  type: 'string',
  description: 'What programs tell errors apart by. Each is explained at /docs/errors.',
  enum: Object.keys(ERROR_CODES),
};

const HEADERS_BY_STATUS: Readonly<Record<number, readonly HeaderName[]>> = {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

const HEADERS_BY_CODE: Readonly<Partial<Record<ErrorCode, readonly HeaderName[]>>> = {
  idempotency_key_in_flight: ['Retry-After'],
};

const SHARED: Readonly<Record<string, readonly ErrorCode[]>> = {
  Unauthorized: ['invalid_api_key', 'expired_api_key'],
  Forbidden: ['insufficient_scope'],
  NotFound: ['not_found'],
  ContentTooLarge: ['body_too_large'],
  UnsupportedMediaType: ['unsupported_media_type'],
  TooManyRequests: ['rate_limit_exceeded'],
  InternalServerError: ['internal_error'],
  ServiceUnavailable: ['service_unavailable'],
};

export function sharedErrorAnswers(publicUrl: string): Json {
  return Object.fromEntries(
    Object.entries(SHARED).map(([name, codes]) => [name, errorAnswer(codes, publicUrl)]),
  );
}

export function errorAnswers(codes: readonly ErrorCode[], publicUrl: string): Record<string, Json> {
  const byStatus = Map.groupBy(new Set(codes), (code) => ERROR_CODES[code].status);
  const responses = [...byStatus].map(([status, all]): [string, Json] => {
    const shared = Object.entries(SHARED).find(([, one]) => one.join() === all.join());
    if (shared === undefined) return [String(status), errorAnswer(all, publicUrl)];
    return [String(status), { $ref: `#/components/responses/${shared[0]}` }];
  });
  return Object.fromEntries(responses);
}

function errorAnswer(codes: readonly ErrorCode[], publicUrl: string): Json {
  const examples = codes.map((code) => [code, { value: exampleError(code, publicUrl) }]);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_CODES[code].message}`).join('\n\n'),
    headers: headerReferences(['X-Request-Id', ...codes.flatMap(headersOf)]),
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function headersOf(code: ErrorCode): readonly HeaderName[] {
  const { status } = ERROR_CODES[code];
  // Only a valid key has its own limit.
  const rate = status === 401 || status >= 500 ? [] : RATE_HEADERS;
  return [...rate, ...(HEADERS_BY_STATUS[status] ?? []), ...(HEADERS_BY_CODE[code] ?? [])];
}

export function headerReferences(names: readonly HeaderName[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function exampleError(code: ErrorCode, publicUrl: string): ErrorBody {
  const { message } = ERROR_CODES[code];
  const param = EXAMPLE_PARAMS[code] ?? null;
  const request = { publicUrl, requestId: EXAMPLE_REQUEST_ID };
  return errorBody({ code, message, param }, request, EXAMPLE_EXTRAS[code]);
}

const EXAMPLE_PARAMS: Readonly<Partial<Record<ErrorCode, string>>> = {
  invalid_parameter: 'limit',
  invalid_cursor: 'cursor',
  invalid_url: 'url',
  unknown_phone_number: 'phoneNumberId',
  unknown_endpoint: 'endpointId',
  idempotency_key_reused: 'Idempotency-Key',
};

const EXAMPLE_EXTRAS: Readonly<Partial<Record<ErrorCode, Parameters<typeof errorBody>[2]>>> = {
  upstream_refused: {
    advice: 'The customer has not written within 24 hours: send a template.',
    serviceMessageId: '4711',
    upstream: {
      message: '(#131047) Re-engagement message',
      type: 'OAuthException',
      code: 131047,
      error_data: { messaging_product: 'whatsapp', details: 'More than 24 hours have passed.' },
      fbtrace_id: 'AbCdEf',
    },
  },
  message_not_sent: { serviceMessageId: '4711' },
};

const header = (description: string, schema: Json) => ({ description, schema });

export const ANSWER_HEADERS = {
  'X-Request-Id': header('Names this request in our log; tell it when you ask for help.', {
    type: 'string',
    pattern: '^req_[0-9a-f]{24}$',
  }),
  'RateLimit-Limit': header('Requests that the key has in a window.', { type: 'integer' }),
  'RateLimit-Remaining': header('Requests that are left in this window.', { type: 'integer' }),
  'RateLimit-Reset': header('Seconds until the next window begins.', { type: 'integer' }),
  'Retry-After': header('Seconds to wait before trying again.', { type: 'integer' }),
  'WWW-Authenticate': header('The challenge of RFC 6750.', { type: 'string' }),
  Location: header('The path of what was created.', { type: 'string' }),
  'Idempotent-Replayed': header(
    '`true` when this is the answer to an earlier request with the same Idempotency-Key.',
    { type: 'string', const: 'true' },
  ),
  ETag: header('Changes with the content; send it back as If-None-Match.', { type: 'string' }),
};

export type HeaderName = keyof typeof ANSWER_HEADERS;

/** On every answer to a request with a valid key, errors included. */
export const RATE_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'] as const;
