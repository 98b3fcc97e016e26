import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isPlatformKey } from '../../features/keys/api-key.ts';
import {
  findPlatformKeys,
  notePlatformKeyUse,
  type PlatformKeyState,
  type PlatformScope,
} from '../../features/keys/platform-key-store.ts';
import { platformKeyName } from '../../features/keys/platform-keys.ts';
import type { Actor } from '../../platform/audit/audit.ts';
import { RateLimitError } from '../../platform/request-input.ts';
import type { KeyTools } from '../keys/api-key-auth.ts';
import { makeKeyCheck, makeKeyLookup, makeKeyUsage, requireScope } from '../keys/key-check.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A platform key must have one of these. */
    platformScopes?: readonly PlatformScope[];
  }
  interface FastifyRequest {
    platformKey: PlatformKeyState | null;
  }
}

/** Lets only requests into this scope whose valid platform key has a scope that the route declares. */
export function requirePlatformKey(
  scope: FastifyInstance,
  { lookupDatabase, shares, limits }: KeyTools,
): void {
  const find = makeKeyLookup((hashes) => findPlatformKeys(lookupDatabase, hashes));
  const refused = ({ id }: PlatformKeyState) => ({ name: platformKeyName(id), wabaId: null });
  const checkKey = makeKeyCheck(scope, { isKey: isPlatformKey, find, refused, wrongKeys: limits.wrongKeys });
  const noteUse = makeKeyUsage(scope, scope.log);
  scope.decorateRequest('platformKey', null);
  scope.addHook('onRoute', ({ method, url, config }) => {
    if (config?.platformScopes === undefined) throw new Error(`route ${method} ${url} declares no scopes`);
  });
  scope.addHook('onRequest', async (request, reply) => {
    const key = await checkKey(request);
    const name = platformKeyName(key.id);
    await limits.takeRequest(request, reply, name);
    requireScope(key.scopes, request.routeOptions.config.platformScopes ?? []);
    request.refusedKey = null;
    if (key.isUseStale) noteUse(key.id, () => notePlatformKeyUse(shares.database, key.id));
    request.platformKey = key;
  });
  scope.addHook('onRequest', (request, _reply, done) => {
    const name = platformKeyName(platformKeyOf(request).id);
    shares.serve({ name, member: name, isOperator: true }, done);
  });
  scope.addHook('onError', async (request, _reply, error) => {
    if (!(error instanceof RateLimitError)) return;
    const key = request.platformKey === null ? null : platformKeyName(request.platformKey.id);
    request.log.warn({ security: true, key }, `a limit of the platform API is reached: ${error.message}`);
  });
}

export function platformKeyOf(request: FastifyRequest): PlatformKeyState {
  if (request.platformKey === null) throw new Error('the route does not require a platform key');
  return request.platformKey;
}

/** Where the operator's program works from is not for tenants. */
export function platformActorOf(request: FastifyRequest): Actor {
  const name = platformKeyName(platformKeyOf(request).id);
  return { name, isOperator: true, isPlatformKey: true, requestId: request.id, ip: request.ip };
}
