/** The moment, up to the year 9999, that text names in seconds or milliseconds since 1970; null for anything else. */
export function epochTimeOf(text: string | null): Date | null {
  if (text === null || !/^\d{1,20}(\.\d{1,9})?$/.test(text)) return null;
  // In seconds so large a number would lie after the year 5138.
  const ms = Number(text) >= 100_000_000_000 ? Number(text) : Number(text) * 1_000;
  return ms > 0 && ms <= 253_402_300_799_000 ? new Date(Math.trunc(ms)) : null;
}
