/** Exit codes, as README.md lists them. */
export const EXIT = {
  ok: 0,
  /** The command ran, and what it checked or sent failed. */
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  /** There is no API key, or it is revoked, expired or lacks a scope. */
  key: 3,
  /** The service cannot be reached. */
  unreachable: 4,
  /** The service refused the request. */
  refused: 5,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** An error for the user: a sentence and the exit code. */
export class Failure extends Error {
  readonly exitCode: ExitCode;
  /** The code of an error of the service. */
  readonly code: string | null;
  constructor(exitCode: ExitCode, message: string, options: ErrorOptions & { code?: string } = {}) {
    super(message, options);
    this.name = 'Failure';
    this.exitCode = exitCode;
    this.code = options.code ?? null;
  }
}

/** A wrong command line. */
export function wrongUsage(message: string): Failure {
  return new Failure(EXIT.usage, message);
}

/** An error of the network in a few words, such as "connection refused". */
export function networkProblem(error: unknown): string {
  const { code, message } = causeOf(error);
  return WORDS[code] ?? (message === '' ? code : message);
}

/** The code of the innermost cause of an error of `fetch`; empty when it has none. */
export function networkCode(error: unknown): string {
  return causeOf(error).code;
}

/** Whether an error of `fetch` stays what it is until the user changes something: a wrong host, certificate or path. */
export function isLasting(error: unknown): boolean {
  const { code, message } = causeOf(error);
  return code === 'ENOTFOUND' || /CERT|SIGNATURE/.test(code) || message === 'unexpected redirect';
}

function causeOf(error: unknown): { code: string; message: string } {
  let inner = error as {
    cause?: unknown;
    code?: unknown;
    message?: unknown;
    name?: unknown;
    errors?: unknown;
  };
  while (typeof inner?.cause === 'object' && inner.cause !== null) inner = inner.cause;
  // Several addresses were tried.
  if (Array.isArray(inner?.errors) && inner.errors.length > 0) inner = inner.errors[0];
  const code = typeof inner?.code === 'string' ? inner.code : String(inner?.name ?? '');
  return { code, message: typeof inner?.message === 'string' ? inner.message : '' };
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  ENOTFOUND: 'unknown host',
  EAI_AGAIN: 'unknown host (the name server does not respond)',
  ETIMEDOUT: 'connection timed out',
  EHOSTUNREACH: 'no route to the host',
  TimeoutError: 'no response in time',
  UND_ERR_CONNECT_TIMEOUT: 'connection timed out',
  UND_ERR_HEADERS_TIMEOUT: 'no response in time',
  UND_ERR_SOCKET: 'the connection was closed before the response',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate chain has a self-signed certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'the certificate chain is incomplete: the intermediate certificate is missing',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate is of an unknown authority',
  CERT_HAS_EXPIRED: 'the certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host',
};
