import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ApiError } from '../errors/api-error.ts';
import { classifyError, logError } from '../plugins/errors.ts';
import { setBaseHeaders } from '../plugins/request-hooks.ts';

type Parts = {
  status: number;
  code: number;
  message: string;
  details?: string | undefined;
  subcode?: number;
};

export class FacadeError extends Error {
  readonly parts: Parts;
  constructor(parts: Parts, cause?: unknown) {
    super(parts.message, { cause });
    this.name = 'FacadeError';
    this.parts = parts;
  }
}

const TEXTS = {
  2: 'Service temporarily unavailable',
  4: 'Application request limit reached',
  10: 'Application does not have permission for this action',
  100: 'Invalid parameter',
  80008: 'There have been too many calls to this WhatsApp Business account.',
  131000: 'Something went wrong',
  131016: 'Service unavailable',
  131050: 'User has stopped receiving marketing messages',
  131052: 'Media download error',
  132000: 'Number of parameters does not match the expected number of params',
  132015: 'Template is paused',
  132016: 'Template is disabled',
};

/** An error with a code of upstream's, in its words; `status` where upstream's own says too little. */
export function errorParts(
  code: keyof typeof TEXTS,
  details?: string,
  status: number = statusOfCode(code),
): Parts {
  return { status, code, message: `(#${code}) ${TEXTS[code]}`, details };
}

export function notPermitted(details: string): FacadeError {
  return new FacadeError(errorParts(10, details));
}

/** The one answer to an object of others and to one that does not exist. */
export function noSuchObject(): FacadeError {
  return notPermitted('The WABA of the API key has no object with this id.');
}

/** The answer to a call that the facade passes on for no object, or not for this one of the key's own. */
export function notPassedOn(): FacadeError {
  return notPermitted(
    'Heliograph does not pass this call on. Its page /docs/tenants/cloud-api lists those it does.',
  );
}

export function wrongParameter(details: string): FacadeError {
  return new FacadeError(errorParts(100, details));
}

export function errorJson({ code, message, details, subcode, status }: Parts, traceId: string): string {
  return JSON.stringify({
    error: {
      message,
      type: 'OAuthException',
      code,
      ...(subcode !== undefined && { error_subcode: subcode }),
      ...(details !== undefined && { error_data: { messaging_product: 'whatsapp', details } }),
      ...(status === 429 || status === 503 ? { is_transient: true } : {}),
      fbtrace_id: traceId,
    },
  });
}

const FORBIDDEN_CODES = new Set([3, 10, 368, 131005, 131031, 130497]);
const SERVER_CODES = new Set([1, 131000, 131016, 131045, 131057]);

/** What upstream refused in another form than its own, such as the page of a proxy before it, in its form. */
export function refusedOtherwise(status: number): FacadeError {
  const details = `The platform answered with HTTP ${status} and no error in its form.`;
  const isRequestRefused = status >= 400 && status < 500;
  return new FacadeError(errorParts(isRequestRefused ? 100 : 2, details, status < 400 ? 502 : status));
}

/** The HTTP status that upstream gives an error of this code (its page of error codes). */
export function statusOfCode(code: unknown): number {
  if (typeof code !== 'number') return 400;
  if (code === 0 || code === 190) return 401;
  if (code === 2 || code === 133004) return 503;
  if (FORBIDDEN_CODES.has(code) || (code >= 200 && code <= 299)) return 403;
  return SERVER_CODES.has(code) ? 500 : 400;
}

export function sendFacadeError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, body, headers } = answerTo(thrown, request);
  if (!(thrown instanceof FacadeError)) logError(classifyError(thrown), request);
  else if (status >= 500) request.log.warn({ err: thrown }, 'a call of the facade could not be answered');
  setBaseHeaders(request, reply);
  reply.code(status).headers(headers).type('application/json; charset=utf-8').send(body);
}

type Answer = { status: number; body: string; headers: Readonly<Record<string, string>> };

function answerTo(thrown: unknown, request: FastifyRequest): Answer {
  if (thrown instanceof FacadeError) {
    return { status: thrown.parts.status, body: errorJson(thrown.parts, request.id), headers: {} };
  }
  const error = classifyError(thrown);
  const { upstream } = error.extras;
  if (upstream !== undefined && error.code === 'upstream_refused') {
    const { code } = upstream as { code?: unknown };
    return { status: statusOfCode(code), body: JSON.stringify({ error: upstream }), headers: error.headers };
  }
  const parts = partsOf(error);
  return { status: parts.status, body: errorJson(parts, request.id), headers: error.headers };
}

/** Refusals that upstream has codes for. */
const OF_TEMPLATES = new Map<string, 132000 | 132015 | 132016>([
  ['template_variables_wrong', 132_000],
  ['template_paused', 132_015],
  ['template_disabled', 132_016],
]);

function partsOf({ code, status, message, param }: ApiError): Parts {
  const details = param === null ? message : `${param}: ${message}`;
  if (status === 401) {
    const token = { status, code: 190, message: `Invalid OAuth access token - ${message}` };
    return code === 'expired_api_key' ? { ...token, subcode: 463 } : token;
  }
  if (code === 'recipient_opted_out') return errorParts(131_050, message);
  const known = OF_TEMPLATES.get(code);
  if (known !== undefined) return errorParts(known, message);
  if (status === 403) return { status, code: 10, message: `(#10) ${message}` };
  if (status === 429) return errorParts(4, details, status);
  if (status === 503) return errorParts(2, details);
  if (code === 'access_token_missing' || status >= 500) return errorParts(131_000, details);
  return errorParts(100, details, [409, 413, 415].includes(status) ? status : 400);
}
