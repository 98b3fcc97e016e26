import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../config/config.ts';
import type { Database } from '../../database/database.ts';
import { inBatches } from '../../database/in-batches.ts';
import { openRateLimitStore, removeExpiredRateLimits } from '../../database/rate-limit-store.ts';
import { ApiError } from '../errors/api-error.ts';
import { countedAddress } from './client-address.ts';
import { createKnownVisitors } from './known-visitors.ts';
import { createSharedLimit, type LimitState, type SharedLimit } from './shared-limit.ts';
import { createStoreLink } from './store-link.ts';

/** A key may spend all of a window at once. */
const KEY_WINDOW_SECONDS = 10;
const ADDRESS_WINDOW_SECONDS = 60;

const REMOVE_EXPIRED_EVERY_MS = 300_000;

/** Who may ask, and how often. Each function throws ApiError 429 for those who may not. */
export type RequestLimits = {
  /** Before a key is looked up: refuses addresses from which too many keys were wrong. */
  checkAddress(ip: string, keyHash: Buffer | null): void;
  noteWrongKey(ip: string): Promise<void>;
  noteRightKey(ip: string, keyHash: Buffer): void;
  /** Takes a request of a valid key, and says on the answer how many are left. */
  takeRequest(request: FastifyRequest, reply: FastifyReply, keyId: string): Promise<void>;
  close(): void;
};

/** The limits of the External API, shared by all processes of a database. */
export function createRequestLimits(
  database: Database,
  rates: Config['api']['rateLimits'],
  log: FastifyBaseLogger,
): RequestLimits {
  const open = (kind: string, rate: number, windowSeconds: number): SharedLimit | null => {
    if (rate === 0) return null;
    const store = openRateLimitStore(database, { kind, windowSeconds });
    return createSharedLimit(createStoreLink(store, log), rate);
  };
  const reads = open('read', rates.readsPerSecond * KEY_WINDOW_SECONDS, KEY_WINDOW_SECONDS);
  const writes = open('write', rates.writesPerSecond * KEY_WINDOW_SECONDS, KEY_WINDOW_SECONDS);
  const wrongKeys = open('address', rates.wrongKeysPerMinute, ADDRESS_WINDOW_SECONDS);
  const visitors = createKnownVisitors();
  const removeExpired = () => inBatches((limit) => removeExpiredRateLimits(database, limit)).catch(() => {});
  const removal = setInterval(removeExpired, REMOVE_EXPIRED_EVERY_MS).unref();

  return {
    checkAddress(ip, keyHash) {
      const state = wrongKeys?.exhausted(countedAddress(ip)) ?? null;
      if (state === null || (keyHash !== null && visitors.isKnown(visitorOf(ip, keyHash)))) return;
      throw tooManyWrongKeys(state);
    },
    async noteWrongKey(ip) {
      const state = (await wrongKeys?.take(countedAddress(ip))) ?? null;
      if (state !== null && !state.isAllowed) throw tooManyWrongKeys(state);
    },
    noteRightKey(ip, keyHash) {
      if (wrongKeys !== null) visitors.note(visitorOf(ip, keyHash));
    },
    async takeRequest({ method }, reply, keyId) {
      const isRead = method === 'GET' || method === 'HEAD';
      const state = (await (isRead ? reads : writes)?.take(keyId)) ?? null;
      if (state === null) return;
      const headers = headersOf(state);
      reply.headers(headers);
      if (state.isAllowed) return;
      throw new ApiError('rate_limit_exceeded', {
        headers: { ...headers, 'retry-after': headers['ratelimit-reset'] },
      });
    },
    close() {
      clearInterval(removal);
      for (const limit of [reads, writes, wrongKeys]) limit?.close();
    },
  };
}

function visitorOf(ip: string, keyHash: Buffer): string {
  return `${keyHash.toString('base64')} ${ip}`;
}

function headersOf({ limit, remaining, resetSeconds }: LimitState) {
  return {
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': String(remaining),
    'ratelimit-reset': String(resetSeconds),
  };
}

function tooManyWrongKeys({ resetSeconds }: LimitState): ApiError {
  const message = 'Too many requests with keys that are not valid came from this address.';
  return new ApiError('rate_limit_exceeded', { message, headers: { 'retry-after': String(resetSeconds) } });
}
