import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../platform/config/config.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { inBatches } from '../../platform/postgres/partitions.ts';
import {
  openRateLimitStore,
  type RateLimitStore,
  removeExpiredRateLimits,
} from '../../platform/postgres/rate-limit-store.ts';
import { ApiError } from '../errors/api-error.ts';
import { type AddressCounts, countByAddress } from './address-counts.ts';

/** A key may spend all of a window at once. */
const KEY_WINDOW_SECONDS = 10;

const REMOVE_EXPIRED_EVERY_MS = 300_000;

export type RequestLimits = {
  /** Keys that were wrong; none is refused for others of its address. */
  wrongKeys: AddressCounts;
  /**
   * Takes a request of a valid key with the cost of the body that it announces, and says on the answer how much is left.
   * Throws ApiError 429.
   */
  takeRequest(request: FastifyRequest, reply: FastifyReply, keyId: string): Promise<void>;
  /** Takes the cost of a body that did not say how long it is. The request itself passes, later ones may not. */
  takeUnannounced(request: FastifyRequest, keyId: string): Promise<void>;
  close(): void;
};

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
  const removeExpired = () =>
    inBatches(
      (limit) => removeExpiredRateLimits(database, limit),
      AbortSignal.timeout(REMOVE_EXPIRED_EVERY_MS),
    ).catch(() => {});
  const removal = setInterval(removeExpired, REMOVE_EXPIRED_EVERY_MS).unref();

  const limitOf = ({ method }: FastifyRequest) => (method === 'GET' || method === 'HEAD' ? reads : writes);

  return {
    wrongKeys: countByAddress(rates.wrongKeysPerMinute),
    async takeRequest(request, reply, keyId) {
      const points = 1 + pointsOf(request, Number(request.headers['content-length'] ?? 0));
      const state = (await limitOf(request)?.take(keyId, points)) ?? null;
      if (state === null) return;
      const headers = headersOf(state);
      reply.headers(headers);
      if (state.isAllowed) return;
      throw new ApiError('rate_limit_exceeded', {
        headers: { ...headers, 'retry-after': headers['ratelimit-reset'] },
      });
    },
    async takeUnannounced(request, keyId) {
      const points = pointsOf(request, request.bodyBytes);
      if (points > 0) await limitOf(request)?.take(keyId, points, true);
    },
    close() {
      clearInterval(removal);
      for (const limit of [reads, writes]) limit?.close();
    },
  };
}

/** Of a body, a point for each of these beside the one of its request. */
const BYTES_PER_POINT = 16 * 1024;

/** A file that is passed on as it comes has its own limits. */
function pointsOf({ routeOptions: { config } }: FastifyRequest, bodyBytes: number): number {
  return config.readsBody === true ? 0 : Math.floor(bodyBytes / BYTES_PER_POINT);
}

function headersOf({ limit, remaining, resetSeconds }: LimitState) {
  return {
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': String(remaining),
    'ratelimit-reset': String(resetSeconds),
  };
}

type LimitState = { isAllowed: boolean; limit: number; remaining: number; resetSeconds: number };

type SharedLimit = {
  /**
   * Takes points of a key, no more than all that it has; `anyway`: also when fewer are left. Null: the store is away and
   * everything passes.
   */
  take(key: string, points: number, anyway?: boolean): Promise<LimitState | null>;
  close(): void;
};

type Window = {
  /** What all processes had taken when the store was last asked. */
  consumed: number;
  /** Taken here and not yet reported to the store. */
  pending: number;
  endsAtMs: number;
  telling: Promise<void> | null;
  timer: NodeJS.Timeout | null;
};

/** A process tells the store what it let through after this time at the latest. */
const TELL_AFTER_MS = 100;

/** And lets no more through without telling than this part of the limit, and of what is left of it. */
const SHARE_OF_LIMIT = 20;
const SHARE_OF_REST = 8;

/** More windows than this are not kept; whose is forgotten is asked for again. */
const MAX_WINDOWS = 20_000;

/**
 * Counts in the store, without a round trip per request: each process lets a small share of the limit through before
 * it tells the store, and a smaller one the less is left. So with n processes a window can be overdrawn by
 * (n - 1)/20 of the limit at most. When the store is away, everything passes.
 */
function createSharedLimit(link: StoreLink, limit: number): SharedLimit {
  const windows = new Map<string, Window>();

  const tell = (key: string, window: Window): Promise<void> => {
    window.telling ??= settle(key, window).finally(() => {
      window.telling = null;
    });
    return window.telling;
  };

  async function settle(key: string, window: Window): Promise<void> {
    if (window.timer !== null) clearTimeout(window.timer);
    window.timer = null;
    const points = window.pending;
    const counted = await link.add(key, points);
    window.pending -= points;
    if (counted === null) return;
    window.consumed = counted.consumed;
    window.endsAtMs = Date.now() + counted.remainingMs;
  }

  const tellSoon = (key: string, window: Window): void => {
    window.timer ??= setTimeout(() => void tell(key, window), TELL_AFTER_MS).unref();
  };

  async function take(key: string, cost: number, anyway = false): Promise<LimitState | null> {
    const points = Math.min(cost, limit);
    const window = windowOf(windows, key);
    while (!link.isAway()) {
      if (isOver(window)) {
        // The first request of a window asks for it with its own points.
        if (window.telling === null) {
          window.pending = points;
          await tell(key, window);
          if (!isOver(window)) return stateOf(window, limit, window.consumed <= limit);
        } else await window.telling;
      } else if (left(window, limit) < points && !anyway) return stateOf(window, limit, false);
      else if (anyway || window.pending < shareOf(window, limit)) {
        window.pending += points;
        tellSoon(key, window);
        return stateOf(window, limit, true);
      } else await tell(key, window);
    }
    link.askAgain(key);
    return null;
  }

  return {
    take,
    close() {
      for (const { timer } of windows.values()) if (timer !== null) clearTimeout(timer);
      windows.clear();
    },
  };
}

function windowOf(windows: Map<string, Window>, key: string): Window {
  const known = windows.get(key);
  if (known !== undefined) return known;
  const [oldest] = windows.size < MAX_WINDOWS ? [] : windows.keys();
  if (oldest !== undefined) windows.delete(oldest);
  const window = { consumed: 0, pending: 0, endsAtMs: 0, telling: null, timer: null };
  windows.set(key, window);
  return window;
}

function isOver({ endsAtMs }: Window): boolean {
  return Date.now() >= endsAtMs;
}

function left({ consumed, pending }: Window, limit: number): number {
  return limit - consumed - pending;
}

function shareOf({ consumed }: Window, limit: number): number {
  return Math.max(1, Math.min(limit / SHARE_OF_LIMIT, (limit - consumed) / SHARE_OF_REST));
}

function stateOf(window: Window, limit: number, isAllowed: boolean): LimitState {
  const resetSeconds = Math.max(1, Math.ceil((window.endsAtMs - Date.now()) / 1000));
  return { isAllowed, limit, remaining: Math.max(0, left(window, limit)), resetSeconds };
}

type StoreLink = {
  /** Null when the store is away. */
  add(key: string, points: number): Promise<{ consumed: number; remainingMs: number } | null>;
  isAway(): boolean;
  /** Finds out beside the requests whether the store is back. */
  askAgain(key: string): void;
};

type Log = Pick<FastifyBaseLogger, 'warn' | 'info'>;

/** A store that takes longer is away: no request waits for it. */
const STORE_TIMEOUT_MS = 1_000;
const ASK_AGAIN_AFTER_MS = 1_000;

/** The store as it may be away: then it is asked once a second, and the log says so once. */
function createStoreLink(store: RateLimitStore, log: Log): StoreLink {
  let isAway = false;
  let askAtMs = 0;
  const add = async (key: string, points: number) => {
    try {
      const counted = await withTimeout(store.add(key, points));
      if (isAway) log.info('rate limits are counted again');
      isAway = false;
      return counted;
    } catch (error) {
      if (!isAway) log.warn({ err: error }, 'rate limits cannot be counted; requests pass');
      isAway = true;
      askAtMs = Date.now() + ASK_AGAIN_AFTER_MS;
      return null;
    }
  };
  return {
    add,
    isAway: () => isAway,
    askAgain(key: string): void {
      if (Date.now() < askAtMs) return;
      askAtMs = Date.now() + ASK_AGAIN_AFTER_MS;
      void add(key, 0);
    },
  };
}

async function withTimeout<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('the store did not answer in time')), STORE_TIMEOUT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
