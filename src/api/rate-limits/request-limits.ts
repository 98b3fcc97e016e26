import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../../platform/config/config.ts';
import { countedAddress } from '../../platform/http/counted-address.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { inBatches } from '../../platform/postgres/partitions.ts';
import {
  openRateLimitStore,
  type RateLimitStore,
  removeExpiredRateLimits,
} from '../../platform/postgres/rate-limit-store.ts';
import { ApiError } from '../errors/api-error.ts';

/** A key may spend all of a window at once. */
const KEY_WINDOW_SECONDS = 10;

const REMOVE_EXPIRED_EVERY_MS = 300_000;

export type RequestLimits = {
  /** Keys that were wrong; none is refused for others of its address. */
  wrongKeys: WrongKeys;
  /** Takes a request of a valid key, and says on the answer how many are left. Throws ApiError 429. */
  takeRequest(request: FastifyRequest, reply: FastifyReply, keyId: string): Promise<void>;
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

const MINUTE_MS = 60_000;
const MAX_ADDRESSES = 10_000;

/** As far as this process knows. */
type WrongKeys = {
  noteWrong(ip: string): void;
  /** Whether more wrong keys than are allowed came from this address within a minute. */
  areMany(ip: string): boolean;
};

/** With `perMinute` 0 there are never many. */
export function createWrongKeys(perMinute: number, now: () => number = Date.now): WrongKeys {
  const windows = new Map<string, { count: number; endsAt: number }>();
  return {
    noteWrong(ip) {
      if (perMinute === 0) return;
      const address = countedAddress(ip);
      const window = windows.get(address);
      if (window !== undefined && window.endsAt > now()) {
        window.count += 1;
        return;
      }
      windows.delete(address);
      const [oldest] = windows.size < MAX_ADDRESSES ? [] : windows.keys();
      if (oldest !== undefined) windows.delete(oldest);
      windows.set(address, { count: 1, endsAt: now() + MINUTE_MS });
    },
    areMany(ip) {
      if (windows.size === 0) return false;
      const window = windows.get(countedAddress(ip));
      return window !== undefined && window.endsAt > now() && window.count > perMinute;
    },
  };
}

type LimitState = { isAllowed: boolean; limit: number; remaining: number; resetSeconds: number };

type SharedLimit = {
  /** Takes one point of a key. Null: the store is away and everything passes. */
  take(key: string): Promise<LimitState | null>;
  close(): void;
};

type Window = {
  /** What all processes had taken when the store was last asked. */
  consumed: number;
  /** Taken here and not yet told to the store. */
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

  async function take(key: string): Promise<LimitState | null> {
    const window = windowOf(windows, key);
    while (!link.isAway()) {
      if (isOver(window)) {
        // The first request of a window asks for it with its own point.
        if (window.telling === null) {
          window.pending = 1;
          await tell(key, window);
          if (!isOver(window)) return stateOf(window, limit, window.consumed <= limit);
        } else await window.telling;
      } else if (left(window, limit) <= 0) return stateOf(window, limit, false);
      else if (window.pending < shareOf(window, limit)) {
        window.pending += 1;
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
