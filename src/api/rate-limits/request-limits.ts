import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../platform/config/config.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { inBatches } from '../../platform/postgres/in-batches.ts';
import { openRateLimitStore, removeExpiredRateLimits } from '../../platform/postgres/rate-limit-store.ts';
import { ApiError } from '../errors/api-error.ts';
import { createSharedLimit, type LimitState, type SharedLimit } from './shared-limit.ts';
import { createStoreLink } from './store-link.ts';
import { createWrongKeys, type WrongKeys } from './wrong-keys.ts';

/** A key may spend all of a window at once. */
const KEY_WINDOW_SECONDS = 10;

const REMOVE_EXPIRED_EVERY_MS = 300_000;

/** Who asks, and how often. */
export type RequestLimits = {
  /** Keys that were wrong; none is refused for others of its address. */
  wrongKeys: WrongKeys;
  /** Takes a request of a valid key, and says on the answer how many are left. Throws ApiError 429. */
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
  const removeExpired = () => inBatches((limit) => removeExpiredRateLimits(database, limit)).catch(() => {});
  const removal = setInterval(removeExpired, REMOVE_EXPIRED_EVERY_MS).unref();

  return {
    wrongKeys: createWrongKeys(rates.wrongKeysPerMinute),
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
      for (const limit of [reads, writes]) limit?.close();
    },
  };
}

function headersOf({ limit, remaining, resetSeconds }: LimitState) {
  return {
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': String(remaining),
    'ratelimit-reset': String(resetSeconds),
  };
}
