import type { FastifyInstance, FastifyRequest } from 'fastify';
import { findApiKey } from '../../database/api-keys.ts';
import type { Database } from '../../database/database.ts';
import { hashApiKey, isApiKey } from '../../domain/api-key-format.ts';
import { ApiError } from '../errors/api-error.ts';
import type { ErrorCode } from '../errors/error-codes.ts';
import { checkScopes, requireDeclaredScopes } from './key-scopes.ts';
import { createKeyUsage } from './key-usage.ts';

/** Whom a request speaks for: the WABA of its API key. */
export type Account = { keyId: string; wabaId: string; tenantId: string };

declare module 'fastify' {
  interface FastifyRequest {
    account: Account | null;
  }
}

const BEARER = /^Bearer +(\S+) *$/i;

/** Lets only requests into this scope whose valid API key has a scope that the route declares. Keys are looked up on each request and never cached. */
export function requireApiKey(scope: FastifyInstance, database: Database): void {
  const usage = createKeyUsage(database, scope.log);
  requireDeclaredScopes(scope);
  scope.decorateRequest('account', null);
  scope.addHook('onRequest', async (request) => {
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
    const key = isApiKey(token) ? await findApiKey(database, hashApiKey(token)) : null;
    if (key === null || key.isRevoked) throw unauthorized('invalid_api_key', token);
    if (key.isExpired) throw unauthorized('expired_api_key', token);
    checkScopes(request, key.scopes);
    if (key.isUseStale) usage.note(key.wabaId, key.id);
    request.account = { keyId: key.id, wabaId: key.wabaId, tenantId: key.tenantId };
  });
  scope.addHook('onClose', async () => await usage.settled());
}

/** The account of a request in a scope that requires a key. */
export function accountOf(request: FastifyRequest): Account {
  if (request.account === null) throw new Error('the route does not require an API key');
  return request.account;
}

/** RFC 6750 §3.1: `error` is for requests that presented a token, not for those that know nothing of it. */
function unauthorized(code: ErrorCode, token: string | undefined): ApiError {
  const challenge = `Bearer realm="heliograph"${token === undefined ? '' : ', error="invalid_token"'}`;
  return new ApiError(code, { headers: { 'www-authenticate': challenge } });
}
