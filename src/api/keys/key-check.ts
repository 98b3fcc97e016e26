import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { hashApiKey, hasRightCheckDigits } from '../../features/keys/api-key.ts';
import { isInNetworks } from '../../platform/http/networks.ts';
import { ApiError } from '../errors/api-error.ts';
import type { ErrorCode } from '../errors/error-codes.ts';
import { createBatchedLookup } from '../plugins/batched-lookup.ts';
import type { RequestLimits } from '../rate-limits/request-limits.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The known key of a request that is not let through; the audit log names it. */
    refusedKey: RefusedKey | null;
  }
}

type RefusedKey = { name: string; wabaId: string | null };

/** What a look-up finds of a key, of whichever kind. */
type FoundKey = {
  keyHash: Buffer;
  allowedNetworks: string[] | null;
  isRevoked: boolean;
  isExpired: boolean;
};

const NO_BEARER = 'The request has no header "Authorization: Bearer <API key>".';
const BEARER = /^Bearer +(\S+) *$/i;

/** The valid key of a request, used from one of its networks. Throws ApiError: 401, 403 `ip_not_allowed`. */
export function makeKeyCheck<Key extends FoundKey>(
  scope: FastifyInstance,
  {
    isKey,
    find,
    refused,
    wrongKeys,
  }: {
    isKey: (token: unknown) => token is string;
    find: KeyLookup<Key>;
    refused: (key: Key) => RefusedKey;
    wrongKeys: RequestLimits['wrongKeys'];
  },
): (request: FastifyRequest) => Promise<Key> {
  scope.decorateRequest('refusedKey', null);
  return async (request) => {
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
    if (!isKey(token)) throw unauthorized('invalid_api_key', token);
    const isDoubtful = !hasRightCheckDigits(token) || wrongKeys.areMany(request.ip);
    const key = await find(hashApiKey(token), isDoubtful);
    if (key === null || key.isRevoked || key.isExpired) {
      wrongKeys.note(request.ip);
      if (key !== null) request.refusedKey = refused(key);
      const isExpired = key?.isExpired === true && !key.isRevoked;
      throw unauthorized(isExpired ? 'expired_api_key' : 'invalid_api_key', token);
    }
    request.refusedKey = refused(key);
    // A thief who is elsewhere takes nothing of the owner's limit.
    if (key.allowedNetworks !== null && !isInNetworks(request.ip, key.allowedNetworks)) {
      wrongKeys.note(request.ip);
      throw new ApiError('ip_not_allowed');
    }
    return key;
  };
}

/** RFC 6750 §3.1: `error` is for requests that presented a token, not for those that know nothing of it. */
function unauthorized(code: ErrorCode, token: string | undefined): ApiError {
  const challenge = `Bearer realm="heliograph"${token === undefined ? '' : ', error="invalid_token"'}`;
  const headers = { 'www-authenticate': challenge };
  return new ApiError(code, { headers, ...(token === undefined && { message: NO_BEARER }) });
}

/** Connections that look-ups of keys take at most. */
const CONNECTIONS = { usual: 2, doubtful: 1 };

/** Finds a key by its hash. What is likely to be made up goes in its own lane and holds up no other. */
export type KeyLookup<Key> = (keyHash: Buffer, isDoubtful?: boolean) => Promise<Key | null>;

/** Each look-up is fresh: a key that is revoked is refused at once. */
export function makeKeyLookup<Key extends FoundKey>(
  findKeys: (hashes: readonly Buffer[]) => Promise<readonly Key[]>,
): KeyLookup<Key> {
  const find = async (hashes: readonly string[]) => {
    const found = await findKeys(hashes.map((hash) => Buffer.from(hash, 'hex')));
    return new Map(found.map((key) => [key.keyHash.toString('hex'), key]));
  };
  const usual = createBatchedLookup({ find, maxUnderWay: CONNECTIONS.usual });
  const doubtful = createBatchedLookup({ find, maxUnderWay: CONNECTIONS.doubtful });
  return (keyHash, isDoubtful = false) => (isDoubtful ? doubtful : usual)(keyHash.toString('hex'));
}

/** Notes the use of keys; no request waits for it, and its failure harms none. */
export function makeKeyUsage(scope: FastifyInstance, log: FastifyBaseLogger) {
  const underWay = new Map<string, Promise<void>>();
  scope.addHook('onClose', async () => {
    await Promise.all(underWay.values());
  });
  return (keyId: string, note: () => Promise<void>): void => {
    if (underWay.has(keyId)) return;
    const noted = note()
      .catch((error: unknown) => log.debug({ err: error }, 'use of an API key was not recorded'))
      .finally(() => underWay.delete(keyId));
    underWay.set(keyId, noted);
  };
}

/** Throws ApiError 403 unless a key with the scopes `has` has one that is wanted; `message` where its lack needs another. */
export function requireScope(
  has: readonly string[],
  wanted: readonly string[],
  message = `The API key lacks the scope ${wanted.join(' or ')}.`,
): void {
  if (wanted.some((scope) => has.includes(scope))) return;
  const challenge = `Bearer realm="heliograph", error="insufficient_scope", scope="${wanted.join(' ')}"`;
  throw new ApiError('insufficient_scope', { message, headers: { 'www-authenticate': challenge } });
}
