import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import {
  API_KEY_SCOPES,
  type ApiKeyScope,
  hashApiKey,
  hasRightCheckDigits,
  isApiKey,
} from '../../features/keys/api-key.ts';
import { type ApiKeyState, findApiKeys, noteApiKeyUse } from '../../features/keys/api-key-store.ts';
import type { SendLimits } from '../../features/keys/send-limits.ts';
import type { Actor } from '../../platform/audit/audit.ts';
import { isInNetworks } from '../../platform/http/networks.ts';
import { shownUrl } from '../../platform/http/outbound-url.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { ApiError } from '../errors/api-error.ts';
import type { ErrorCode } from '../errors/error-codes.ts';
import { createBatchedLookup } from '../plugins/batched-lookup.ts';
import type { RequestLimits } from '../rate-limits/request-limits.ts';
import type { ConnectionShares } from '../shares/connection-shares.ts';

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
    refusedKey: { keyId: string; wabaId: string } | null;
  }
}

const NO_BEARER = 'The request has no header "Authorization: Bearer <API key>".';
const BEARER = /^Bearer +(\S+) *$/i;

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
  const usage = createKeyUsage(shares.database, scope.log);
  const findKey = createKeyLookup(lookupDatabase);
  const { wrongKeys } = limits;
  requireDeclaredScopes(scope);
  scope.decorateRequest('account', null);
  scope.decorateRequest('refusedKey', null);
  scope.addHook('onRequest', async (request, reply) => {
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
    if (!isApiKey(token)) throw unauthorized('invalid_api_key', token);
    const isDoubtful = !hasRightCheckDigits(token) || wrongKeys.areMany(request.ip);
    const key = await findKey(hashApiKey(token), isDoubtful);
    if (key === null || key.isRevoked || key.isExpired) {
      wrongKeys.note(request.ip);
      if (key !== null) request.refusedKey = { keyId: key.id, wabaId: key.wabaId };
      const isExpired = key?.isExpired === true && !key.isRevoked;
      throw unauthorized(isExpired ? 'expired_api_key' : 'invalid_api_key', token);
    }
    request.refusedKey = { keyId: key.id, wabaId: key.wabaId };
    // A thief who is elsewhere takes nothing of the tenant's limit.
    if (key.allowedNetworks !== null && !isInNetworks(request.ip, key.allowedNetworks)) {
      wrongKeys.note(request.ip);
      throw new ApiError('ip_not_allowed');
    }
    await limits.takeRequest(request, reply, key.id);
    checkScopes(request, key.scopes);
    request.refusedKey = null;
    if (key.isUseStale) usage.note(key.wabaId, key.id);
    const { id: keyId, wabaId, tenantId, scopes, maxMessagesPerDay, recipients } = key;
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
  scope.addHook('onClose', async () => await usage.settled());
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

/** RFC 6750 §3.1: `error` is for requests that presented a token, not for those that know nothing of it. */
function unauthorized(code: ErrorCode, token: string | undefined): ApiError {
  const challenge = `Bearer realm="heliograph"${token === undefined ? '' : ', error="invalid_token"'}`;
  const headers = { 'www-authenticate': challenge };
  return new ApiError(code, { headers, ...(token === undefined && { message: NO_BEARER }) });
}

/** No request waits for it, and its failure harms none. */
function createKeyUsage(database: Database, log: FastifyBaseLogger) {
  const underWay = new Map<string, Promise<void>>();
  return {
    note(wabaId: string, keyId: string): void {
      if (underWay.has(keyId)) return;
      const noted = noteApiKeyUse(database, wabaId, keyId)
        .catch((error: unknown) => log.debug({ err: error }, 'use of an API key was not recorded'))
        .finally(() => underWay.delete(keyId));
      underWay.set(keyId, noted);
    },
    async settled(): Promise<void> {
      await Promise.all(underWay.values());
    },
  };
}

/** Connections that look-ups of keys take at most. */
const CONNECTIONS = { usual: 2, doubtful: 1 };

/** Finds a key by its hash. What is likely to be made up goes in its own lane and holds up no other. */
type KeyLookup = (keyHash: Buffer, isDoubtful?: boolean) => Promise<ApiKeyState | null>;

/** Each look-up is fresh: a key that is revoked is refused at once. */
export function createKeyLookup(database: Database): KeyLookup {
  const find = async (hashes: readonly string[]) => {
    const states = await findApiKeys(
      database,
      hashes.map((hash) => Buffer.from(hash, 'hex')),
    );
    return new Map(states.map((state) => [state.keyHash.toString('hex'), state]));
  };
  const usual = createBatchedLookup({ find, maxUnderWay: CONNECTIONS.usual });
  const doubtful = createBatchedLookup({ find, maxUnderWay: CONNECTIONS.doubtful });
  return (keyHash, isDoubtful = false) => (isDoubtful ? doubtful : usual)(keyHash.toString('hex'));
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

/** Throws ApiError 403 unless a key with the scopes `has` may use the route of this request. */
function checkScopes(request: FastifyRequest, has: readonly ApiKeyScope[]): void {
  const { scopes: wanted = [] } = request.routeOptions.config;
  requireScope(has, wanted);
}

/** Throws ApiError 403 unless a key with the scopes `has` has one that is wanted; `message` where its lack needs another. */
export function requireScope(
  has: readonly ApiKeyScope[],
  wanted: readonly ApiKeyScope[],
  message = `The API key lacks the scope ${wanted.join(' or ')}.`,
): void {
  if (wanted.some((scope) => has.includes(scope))) return;
  const challenge = `Bearer realm="heliograph", error="insufficient_scope", scope="${wanted.join(' ')}"`;
  throw new ApiError('insufficient_scope', { message, headers: { 'www-authenticate': challenge } });
}

/** A route of this scope that declares no scopes is a mistake that must not wait for a request. */
function requireDeclaredScopes(secured: FastifyInstance): void {
  secured.addHook('onRoute', ({ method, url, config }) => {
    if (config?.scopes === undefined) throw new Error(`route ${method} ${url} declares no scopes`);
  });
}
