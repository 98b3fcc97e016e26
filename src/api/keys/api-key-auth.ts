import type { FastifyInstance, FastifyRequest } from 'fastify';
import { API_KEY_SCOPES, type ApiKeyScope, isApiKey } from '../../features/keys/api-key.ts';
import { type ApiKeyState, findApiKeys, noteApiKeyUse } from '../../features/keys/api-key-store.ts';
import type { SendLimits } from '../../features/keys/send-limits.ts';
import type { Actor } from '../../platform/audit/audit.ts';
import { shownUrl } from '../../platform/http/outbound-url.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { ApiError } from '../errors/api-error.ts';
import type { RequestLimits } from '../rate-limits/request-limits.ts';
import type { ConnectionShares } from '../shares/connection-shares.ts';
import { type KeyLookup, makeKeyCheck, makeKeyLookup, makeKeyUsage, requireScope } from './key-check.ts';

export type Account = SendLimits & {
  keyId: string;
  wabaId: string;
  tenantId: string;
  scopes: readonly ApiKeyScope[];
};

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A key must have one of these. */
    scopes?: readonly ApiKeyScope[];
  }
  interface FastifyRequest {
    account: Account | null;
  }
}

export type KeyTools = {
  lookupDatabase: Database;
  shares: ConnectionShares;
  limits: RequestLimits;
};

/**
 * Lets only requests into this scope whose valid API key has a scope that the route declares. Keys are looked up on
 * each request and never cached. A wrong key gets 401 and a right one is served, whatever else comes from its address.
 */
export function requireApiKey(scope: FastifyInstance, { lookupDatabase, shares, limits }: KeyTools): void {
  const { wrongKeys } = limits;
  const find = createKeyLookup(lookupDatabase);
  const refused = ({ id, wabaId }: ApiKeyState) => ({ name: `API key ${id}`, wabaId });
  const checkKey = makeKeyCheck(scope, { isKey: isApiKey, find, refused, wrongKeys });
  const noteUse = makeKeyUsage(scope, scope.log);
  requireDeclaredScopes(scope);
  scope.decorateRequest('account', null);
  scope.addHook('onRequest', async (request, reply) => {
    const key = await checkKey(request);
    await limits.takeRequest(request, reply, key.id);
    const { scopes: wanted = [] } = request.routeOptions.config;
    requireScope(key.scopes, wanted);
    request.refusedKey = null;
    if (key.isSuspended && isSend(request.method, wanted)) throw new ApiError('tenant_suspended');
    const { id: keyId, wabaId, tenantId, scopes, maxMessagesPerDay, recipients } = key;
    if (key.isUseStale) noteUse(keyId, () => noteApiKeyUse(shares.database, wabaId, keyId));
    request.account = { keyId, wabaId, tenantId, scopes, maxMessagesPerDay, recipients };
  });
  scope.addHook('onRequest', (request, _reply, done) => {
    const { tenantId, wabaId } = accountOf(request);
    shares.serve({ name: tenantId, member: wabaId }, done);
  });
  scope.addHook('preValidation', async (request) => {
    const isUnannounced = request.headers['transfer-encoding'] !== undefined;
    if (isUnannounced) await limits.takeUnannounced(request, accountOf(request).keyId);
  });
}

export function accountOf(request: FastifyRequest): Account {
  if (request.account === null) throw new Error('the route does not require an API key');
  return request.account;
}

/** A URL of the tenant's servers, in full only for a key that may change it: its path and query may be credentials. */
export function urlFor(request: FastifyRequest, url: string): string {
  return accountOf(request).scopes.includes('manage_webhooks') ? url : shownUrl(url);
}

export function apiActorOf(request: FastifyRequest): Actor {
  const { keyId, scopes } = accountOf(request);
  const mayReadEvents = SCOPES.readEvents.scopes.some((scope) => scopes.includes(scope));
  const apiKey = { id: keyId, mayReadEvents };
  return { name: `API key ${keyId}`, apiKey, requestId: request.id, ip: request.ip };
}

/** Each look-up is fresh: a key that is revoked is refused at once. */
export function createKeyLookup(database: Database): KeyLookup<ApiKeyState & { keyHash: Buffer }> {
  return makeKeyLookup((hashes) => findApiKeys(database, hashes));
}

const SENDING: readonly ApiKeyScope[] = ['send', 'graph', 'graph_manage'];

/** What a suspended tenant does not do: all that goes to upstream, but for looking. */
function isSend(method: string, scopes: readonly ApiKeyScope[]): boolean {
  return method !== 'GET' && method !== 'HEAD' && scopes.every((scope) => SENDING.includes(scope));
}

export const SCOPES = {
  any: { scopes: API_KEY_SCOPES },
  read: { scopes: ['read'] },
  send: { scopes: ['send'] },
  /** Reading what concerns webhooks is part of managing them, but for events, whose bodies are what customers wrote. */
  readWebhooks: { scopes: ['read', 'manage_webhooks'] },
  readEvents: { scopes: ['read', 'read_events'] },
  manageWebhooks: { scopes: ['manage_webhooks'] },
  export: { scopes: ['export'] },
  erase: { scopes: ['erase'] },
  graph: { scopes: ['graph'] },
  graphRead: { scopes: ['graph', 'graph_manage'] },
  graphManage: { scopes: ['graph_manage'] },
} as const satisfies Record<string, { scopes: readonly ApiKeyScope[] }>;

export type ScopeName = keyof typeof SCOPES;

/** A route of this scope that declares no scopes is a mistake that must not wait for a request. */
function requireDeclaredScopes(secured: FastifyInstance): void {
  secured.addHook('onRoute', ({ method, url, config }) => {
    if (config?.scopes === undefined) throw new Error(`route ${method} ${url} declares no scopes`);
  });
}
