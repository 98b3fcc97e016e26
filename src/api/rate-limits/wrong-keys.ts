import { countedAddress } from '../../platform/http/counted-address.ts';

const MINUTE_MS = 60_000;
const MAX_ADDRESSES = 10_000;

/** Which addresses ask with wrong keys only; as far as this process knows. */
export type WrongKeys = {
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
