import type { FastifyBaseLogger } from 'fastify';
import type { RateLimitStore } from '../../platform/postgres/rate-limit-store.ts';

/** A store of counts that may be away. */
export type StoreLink = {
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
export function createStoreLink(store: RateLimitStore, log: Log): StoreLink {
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
