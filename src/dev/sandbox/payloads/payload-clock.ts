const SEEDED_TIMESTAMP_SECONDS = 1_790_000_000;

/** The `timestamp` member of a payload, a string of seconds; fixed for seeded payloads. */
export function timestampSeconds(request: { seed?: string; timestampSeconds?: number }): string {
  const now = request.seed === undefined ? Math.floor(Date.now() / 1000) : SEEDED_TIMESTAMP_SECONDS;
  return String(request.timestampSeconds ?? now);
}
