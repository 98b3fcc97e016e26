/** Receivers refuse signatures that are more than 5 minutes off; a minute is noticed early enough. */
const NOTICED_MS = 60_000;

/** How far the clock of this machine is ahead of that of a response, in ms; 0 where it does not say. */
export function clockAheadMs(response: Pick<Response, 'headers'>, nowMs = Date.now()): number {
  const serverMs = Date.parse(response.headers.get('date') ?? '');
  return Number.isNaN(serverMs) ? 0 : nowMs - serverMs;
}

/** The sentence about a clock that is off; null for one that is right. */
export function clockNote(aheadMs: number): string | null {
  if (Math.abs(aheadMs) < NOTICED_MS) return null;
  const minutes = Math.round(Math.abs(aheadMs) / 60_000);
  const shown = `${minutes} ${minutes === 1 ? 'minute' : 'minutes'} ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
  return `Warning: the clock of this machine is ${shown} that of the service. Receivers elsewhere refuse signatures that are more than 5 minutes off: synchronize it.`;
}
