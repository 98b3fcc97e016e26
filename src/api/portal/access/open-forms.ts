import type { FastifyInstance, FastifyRequest } from 'fastify';
import { classifyError } from '../../plugins/errors.ts';
import { countByAddress } from '../../rate-limits/address-counts.ts';
import { PageError, tooManyAttempts } from './page-error.ts';
import { viewerIfAny } from './viewer.ts';

/** Strangers send an address, a password or a code. */
const BODY_LIMIT_BYTES = 8 * 1024;

/** Forms of a browser that follows our pages are refused now and then only. */
const REFUSED_PER_MINUTE = 30;
const WAIT_MS = 60_000;

/**
 * Forms of pages that need no session: they are small, and after many that could not be used, those of the address are
 * refused before they are read. `isKnown`: the browser has signed in before, so others of its address do not matter.
 */
export function limitOpenForms(
  scope: FastifyInstance,
  isKnown: (request: FastifyRequest) => boolean,
  now: () => number,
): void {
  const refused = countByAddress(REFUSED_PER_MINUTE, now);
  scope.addHook('onRoute', (route) => {
    if (route.config?.pageAccess === 'open') route.bodyLimit ??= BODY_LIMIT_BYTES;
  });
  scope.addHook('onRequest', async (request) => {
    if (isOpenForm(request) && refused.areMany(request.ip) && !isKnown(request))
      throw tooManyAttempts(WAIT_MS);
  });
  scope.addHook('onError', async (request, _reply, error) => {
    if (isOpenForm(request) && isUnusable(error)) refused.note(request.ip);
  });
}

/** It comes from elsewhere, is too large, or no form. What is wrong in a form is counted by its page. */
function isUnusable(error: unknown): boolean {
  if (error instanceof PageError) return error.status === 403;
  return [400, 413, 415].includes(classifyError(error).status);
}

function isOpenForm(request: FastifyRequest): boolean {
  const { method, routeOptions } = request;
  return method === 'POST' && routeOptions.config.pageAccess === 'open' && viewerIfAny(request) === null;
}
