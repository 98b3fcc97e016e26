import { errors } from 'undici';

/** Why no usable response came, in the words that tenants and operators read. */
export const SEND_ERROR_CLASSES = [
  'dns',
  'refused',
  'reset',
  'tls',
  'timeout',
  'blocked_address',
  'too_large_header',
  'invalid_url',
  'closed',
  'protocol',
  'unreachable',
  /** Our own egress proxy does not work: nothing is known of the receiver. */
  'proxy',
  'proxy_refused',
  'aborted',
  'other',
] as const;

export type SendErrorClass = (typeof SEND_ERROR_CLASSES)[number];

export type SendFailure = { errorClass: SendErrorClass; message: string };

/** A failure whose class is already known. Its message is short, public and free of addresses and secrets. */
export class SendError extends Error {
  readonly errorClass: SendErrorClass;
  constructor(errorClass: SendErrorClass, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'SendError';
    this.errorClass = errorClass;
  }
}

const CLOSED: SendFailure = {
  errorClass: 'closed',
  message: 'The receiver closed the connection before its response was complete.',
};
const RESET: SendFailure = { errorClass: 'reset', message: 'The receiver reset the connection.' };
const TIMEOUT: SendFailure = { errorClass: 'timeout', message: 'The receiver did not respond in time.' };
const UNREACHABLE: SendFailure = { errorClass: 'unreachable', message: 'The address cannot be reached.' };
const PROTOCOL: SendFailure = {
  errorClass: 'protocol',
  message: 'The receiver did not respond with valid HTTP/1.1.',
};

const FAILURE_BY_CODE: ReadonlyMap<string, SendFailure> = new Map(
  Object.entries<SendFailure>({
    ECONNREFUSED: { errorClass: 'refused', message: 'The receiver refused the connection.' },
    ECONNRESET: RESET,
    EPIPE: RESET,
    ETIMEDOUT: TIMEOUT,
    EHOSTUNREACH: UNREACHABLE,
    ENETUNREACH: UNREACHABLE,
    ENETDOWN: UNREACHABLE,
    EHOSTDOWN: UNREACHABLE,
    EADDRNOTAVAIL: UNREACHABLE,
    EACCES: UNREACHABLE,
    EPERM: UNREACHABLE,
    UND_ERR_HEADERS_OVERFLOW: {
      errorClass: 'too_large_header',
      message: 'The response headers are larger than 16 KiB.',
    },
    UND_ERR_RES_CONTENT_LENGTH_MISMATCH: CLOSED,
    UND_ERR_DESTROYED: { errorClass: 'aborted', message: 'The sender is shutting down.' },
    UND_ERR_CLOSED: { errorClass: 'aborted', message: 'The sender is shutting down.' },
    UND_ERR_INVALID_ARG: { errorClass: 'other', message: 'The request has a header that cannot be sent.' },
    EMFILE: { errorClass: 'other', message: 'The sender has no free connection.' },
  }),
);

/** undici words a violation of HTTP as a socket error; only the text tells it from a closed connection. */
const SOCKET_PROTOCOL_ERRORS = new Set(['bad response', 'bad upgrade']);

/**
 * Turns any error of a send into its class and a public message. `reusedUnanswered`: the connection had served a
 * request before and no byte of this response came, so the receiver closed it while it was idle.
 */
export function classifySendError(
  error: unknown,
  { reusedUnanswered }: { reusedUnanswered: boolean },
): SendFailure {
  if (error instanceof SendError) return { errorClass: error.errorClass, message: error.message };
  const code = errorCode(error);
  const known = FAILURE_BY_CODE.get(code);
  if (known !== undefined) return known;
  if (error instanceof errors.HTTPParserError) {
    // The error has no code; only its text tells a response cut short from one that is not HTTP.
    return error.message.includes('EOF') ? CLOSED : PROTOCOL;
  }
  if (code === 'UND_ERR_SOCKET') {
    if (error instanceof Error && SOCKET_PROTOCOL_ERRORS.has(error.message)) return PROTOCOL;
    return reusedUnanswered ? RESET : CLOSED;
  }
  if (isTlsCode(code)) return tlsFailure(code);
  return { errorClass: 'other', message: 'The request failed.' };
}

/** The failure of a TLS handshake; `code` is OpenSSL's or Node's name for it and safe to show. */
export function tlsFailure(code: string): SendFailure {
  return {
    errorClass: 'tls',
    message: code === '' ? 'The TLS handshake failed.' : `The TLS handshake failed (${code}).`,
  };
}

/** The `code` of a system error, of the first of several tried addresses, or ''. */
export function errorCode(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return errorCode(error.errors[0]);
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}

function isTlsCode(code: string): boolean {
  return /^(?:ERR_TLS_|ERR_SSL_|CERT_|EPROTO$|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH$)/.test(
    code,
  );
}
