/** Headers of answers, as the components of the document hold them. */
export const ANSWER_HEADERS = {
  'X-Request-Id': {
    description: 'Names this request in our log; tell it when you ask for help.',
    schema: { type: 'string', pattern: '^req_[0-9a-f]{24}$' },
  },
  'RateLimit-Limit': {
    description: 'Requests that the key has in a window.',
    schema: { type: 'integer' },
  },
  'RateLimit-Remaining': {
    description: 'Requests that are left in this window.',
    schema: { type: 'integer' },
  },
  'RateLimit-Reset': {
    description: 'Seconds until the next window begins.',
    schema: { type: 'integer' },
  },
  'Retry-After': { description: 'Seconds to wait before trying again.', schema: { type: 'integer' } },
  'WWW-Authenticate': {
    description: 'The challenge of RFC 6750.',
    schema: { type: 'string' },
  },
  Location: { description: 'The path of what was created.', schema: { type: 'string' } },
  'Idempotent-Replayed': {
    description: '`true` when this is the answer to an earlier request with the same Idempotency-Key.',
    schema: { type: 'string', const: 'true' },
  },
  ETag: {
    description: 'Changes with the content; send it back as If-None-Match.',
    schema: { type: 'string' },
  },
} as const;

export type HeaderName = keyof typeof ANSWER_HEADERS;

/** On every answer to a request with a valid key, errors included. */
export const RATE_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'] as const;
