import { randomBytes } from 'node:crypto';

/** An answer of the Graph API that reports an error. */
export type GraphFailure = { status: number; body: { error: Record<string, unknown> } };

function failure(status: number, error: Record<string, unknown>): GraphFailure {
  return { status, body: { error: { ...error, fbtrace_id: `A${randomBytes(15).toString('base64url')}` } } };
}

/** The generic answer for an object that is unknown, gone or not the caller's. */
export function objectMissing(id: string): GraphFailure {
  const reason =
    'does not exist, cannot be loaded due to missing permissions, or does not support this operation.';
  return failure(400, {
    message: `Unsupported get request. Object with ID '${id}' ${reason}`,
    type: 'GraphMethodException',
    code: 100,
    error_subcode: 33,
  });
}

/** The answer to a missing, wrong or ended access token. */
export function tokenInvalid(): GraphFailure {
  return failure(401, {
    message: 'Error validating access token: Session has expired',
    type: 'OAuthException',
    code: 190,
    error_subcode: 463,
  });
}

/** The answer to a request that the platform does not understand. */
export function invalidParameter(code: 100 | 131008 | 131009, details: string): GraphFailure {
  const title = code === 131008 ? 'Required parameter is missing' : 'Parameter value is not valid';
  return failure(400, {
    message: code === 100 ? `(#100) ${details}` : `(#${code}) ${title}`,
    type: 'OAuthException',
    code,
    ...(code === 100 ? {} : { error_data: { messaging_product: 'whatsapp', details } }),
  });
}

/** The answer to a message with a template that the account does not have in this language, or that is not approved. */
export function templateMissing(name: string, language: string): GraphFailure {
  return failure(404, {
    message: '(#132001) Template name does not exist in the translation',
    type: 'OAuthException',
    code: 132001,
    error_data: {
      messaging_product: 'whatsapp',
      details: `template name (${name}) does not exist in ${language}`,
    },
  });
}

/** The answer to a call that the platform understands and refuses. */
export function refusedCall(code: number, message: string, subcode?: number): GraphFailure {
  const error = { message: `(#${code}) ${message}`, type: 'OAuthException', code };
  return failure(400, { ...error, ...(subcode !== undefined && { error_subcode: subcode }) });
}

function codeOfStatus(status: number): number {
  if (status === 401) {
    return 190;
  }
  if (status === 403) {
    return 200;
  }
  if (status === 429) {
    return 130429;
  }
  return status >= 500 ? 2 : 100;
}

/** The answer of a fault of kind `status`: the usual code of that status unless one is given. */
export function requestedFailure(status: number, code?: number): GraphFailure {
  if (code === undefined && status === 401) {
    return tokenInvalid();
  }
  const isTransient = status >= 500 ? { is_transient: true } : {};
  const message =
    status >= 500 ? 'Service temporarily unavailable' : `(#${code ?? codeOfStatus(status)}) Sandbox fault`;
  return failure(status, {
    message,
    type: 'OAuthException',
    code: code ?? codeOfStatus(status),
    ...isTransient,
  });
}
