const MAX_VISITORS = 10_000;
const KNOWN_FOR_MS = 600_000;

/**
 * Keys that were valid at an address within ten minutes. They go on working there while the address has no attempts
 * left: one program with an old key must not shut out the others behind the same address.
 */
export function createKnownVisitors() {
  const lastSeen = new Map<string, number>();
  return {
    note(visitor: string): void {
      if (!lastSeen.has(visitor) && lastSeen.size >= MAX_VISITORS) {
        const [oldest = ''] = lastSeen.keys();
        lastSeen.delete(oldest);
      }
      lastSeen.set(visitor, Date.now());
    },
    isKnown(visitor: string): boolean {
      return Date.now() - (lastSeen.get(visitor) ?? 0) < KNOWN_FOR_MS;
    },
  };
}
