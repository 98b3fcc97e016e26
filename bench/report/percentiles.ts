/** The value below or at which `share` (0 to 1) of the values lie (nearest rank); NaN when there are none. */
function percentile(ascending: readonly number[], share: number): number {
  if (ascending.length === 0) return Number.NaN;
  const rank = Math.max(1, Math.ceil(share * ascending.length));
  return ascending[Math.min(rank, ascending.length) - 1] ?? Number.NaN;
}

export type Percentiles = { p50: number; p95: number; p99: number; max: number };

/** Of values in any order. */
export function percentilesOf(values: readonly number[]): Percentiles {
  const ascending = [...values].sort((a, b) => a - b);
  const at = (share: number) => percentile(ascending, share);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}
