import type { StoreLink } from './store-link.ts';

/** What a request is told about its limit. */
export type LimitState = { isAllowed: boolean; limit: number; remaining: number; resetSeconds: number };

/** A limit over all processes. */
export type SharedLimit = {
  /** Takes one point of a key. Null: the store is away and everything passes. */
  take(key: string): Promise<LimitState | null>;
  close(): void;
};

/** What this process knows of a key's window. */
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
export function createSharedLimit(link: StoreLink, limit: number): SharedLimit {
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
        // Whoever comes first into a window asks for it with his own point.
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
