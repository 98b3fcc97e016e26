const ISO_TIME = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

/** Reads an ISO 8601 time with its offset, with or without seconds; null: it is none, or its month has no such day. */
export function readIsoTime(text: string): Date | null {
  const [, day] = ISO_TIME.exec(text) ?? [];
  const time = new Date(text);
  return day !== undefined && isDay(day) && !Number.isNaN(time.getTime()) ? time : null;
}

/** JavaScript reads 30 February as 2 March. */
function isDay(day: string): boolean {
  const read = new Date(`${day}T00:00:00Z`);
  return Number.isFinite(read.getTime()) && read.toISOString().startsWith(day);
}

/** A moment as `2026-11-21 10:25:42 UTC`. */
export function utcText(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
