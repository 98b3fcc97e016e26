import type { FastifyInstance, FastifyRequest } from 'fastify';
import { API_KEY_SCOPES, type ApiKeyScope } from '../../keys/api-key-scopes.ts';
import { ApiError } from '../errors/api-error.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A key must have one of these. */
    scopes?: readonly ApiKeyScope[];
  }
}

/** What routes declare in their `config`. */
export const SCOPES = {
  any: { scopes: API_KEY_SCOPES },
  read: { scopes: ['read'] },
  send: { scopes: ['send'] },
  /** Reading what concerns webhooks is part of managing them. */
  readWebhooks: { scopes: ['read', 'manage_webhooks'] },
  manageWebhooks: { scopes: ['manage_webhooks'] },
} as const satisfies Record<string, { scopes: readonly ApiKeyScope[] }>;

/** Throws ApiError 403 unless a key with the scopes `has` may use the route of this request. */
export function checkScopes(request: FastifyRequest, has: readonly ApiKeyScope[]): void {
  const { scopes: wanted = [] } = request.routeOptions.config;
  if (wanted.some((scope) => has.includes(scope))) return;
  const challenge = `Bearer realm="heliograph", error="insufficient_scope", scope="${wanted.join(' ')}"`;
  throw new ApiError('insufficient_scope', {
    message: `The API key lacks the scope ${wanted.join(' or ')}.`,
    headers: { 'www-authenticate': challenge },
  });
}

/** A route of this scope that declares no scopes is a mistake that must not wait for a request. */
export function requireDeclaredScopes(secured: FastifyInstance): void {
  secured.addHook('onRoute', ({ method, url, config }) => {
    if (config?.scopes === undefined) throw new Error(`route ${method} ${url} declares no scopes`);
  });
}
