import { countedAddress } from '../../platform/http/counted-address.ts';

const MINUTE_MS = 60_000;
const MAX_ADDRESSES = 10_000;

/** How often something went wrong for an address, as far as this process knows. */
export type AddressCounts = {
  note(ip: string): void;
  /** Whether it was noted more often than is allowed within a minute. */
  areMany(ip: string): boolean;
};

/** With `perMinute` 0 there are never many. */
export function countByAddress(perMinute: number, now: () => number = Date.now): AddressCounts {
  const windows = new Map<string, { count: number; endsAt: number }>();
  return {
    note(ip) {
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
