/** Endpoints that are named as the busiest. */
const NAMED = 5;

export type BusyEndpoint = { endpointId: string; attempts: number };

/** Counts attempts by endpoint until it is cleared. */
export function makeAttemptTally() {
  const counts = new Map<string, number>();
  return {
    note: (endpointId: string) => void counts.set(endpointId, (counts.get(endpointId) ?? 0) + 1),
    clear: () => counts.clear(),
    /** The endpoints with the most attempts, most first, five at most. */
    busiest(): BusyEndpoint[] {
      const most: BusyEndpoint[] = [];
      for (const [endpointId, attempts] of counts) {
        if (most.length === NAMED && attempts <= (most.at(-1)?.attempts ?? 0)) continue;
        most.push({ endpointId, attempts });
        most.sort((one, other) => other.attempts - one.attempts);
        most.length = Math.min(most.length, NAMED);
      }
      return most;
    },
  };
}
