import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { FormTokens } from './form-tokens.ts';
import { formRefused } from './page-error.ts';

const LOOKING = new Set(['GET', 'HEAD']);

/**
 * Lets forms through only when they come from a page of this site and of this session: what the browser says of the
 * origin is looked at before the body is read, the token after. Throws PageError 403.
 */
export function refuseForeignForms(scope: FastifyInstance, tokens: FormTokens, publicUrl: string): void {
  const publicOrigin = new URL(publicUrl);
  scope.addHook('onRequest', async (request) => {
    if (!LOOKING.has(request.method) && !isFromHere(request, publicOrigin)) throw formRefused();
  });
  scope.addHook('preValidation', async (request) => {
    if (LOOKING.has(request.method)) return;
    const token = takeToken(request.body);
    if (token === null || !tokens.isRight(request, token)) throw formRefused();
  });
}

/** Browsers send at least one of the two headers with each form, and scripts cannot set either. */
function isFromHere(request: FastifyRequest, publicOrigin: URL): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (site !== undefined && site !== 'same-origin') return false;
  if (origin === undefined) return site !== undefined;
  if (origin === publicOrigin.origin) return true;
  // This machine's own address, or a second name, may be used too; the public name is the public origin and no other.
  return request.host !== publicOrigin.host && origin === `${request.protocol}://${request.host}`;
}

/** Takes the token out of the body, so that schemas of forms need not speak of it. */
function takeToken(body: unknown): string | null {
  if (typeof body !== 'object' || body === null || !('_csrf' in body)) return null;
  const field = body._csrf;
  delete body._csrf;
  // A field of a form with files is an object.
  const value = typeof field === 'object' && field !== null && 'value' in field ? field.value : field;
  return typeof value === 'string' ? value : null;
}
