const WINDOW_MS = 24 * 3_600_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Until when free-form messages can be sent after a customer's last message; null once that is over. */
export function windowEnd(lastContactAt: Date | null, now: Date): Date | null {
  const endMs = (lastContactAt?.getTime() ?? 0) + WINDOW_MS;
  return endMs > now.getTime() ? new Date(endMs) : null;
}

/** `until 27 Nov, 17:07 UTC (23 h)` */
export function windowText(lastContactAt: Date, now: Date): string {
  const end = new Date(lastContactAt.getTime() + WINDOW_MS);
  const day = end.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
  const leftMs = Math.max(0, end.getTime() - now.getTime());
  const left =
    leftMs < HOUR_MS ? `${Math.ceil(leftMs / MINUTE_MS)} min` : `${Math.floor(leftMs / HOUR_MS)} h`;
  return `until ${day}, ${end.toISOString().slice(11, 16)} UTC (${left})`;
}
