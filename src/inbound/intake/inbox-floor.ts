/** An insert that is under way must end within this time, or its body waits for the next full look. */
const LAG_MS = 60_000;

/** Full looks may take a twentieth of the time. */
const FULL_LOOK = { restMs: 10_000, restTimes: 20 };

const NOTED_EVERY_MS = 1_000;

/**
 * Where looks for new bodies begin. While an old snapshot is open (a dump, a forgotten transaction), a look from
 * the beginning walks over every body that was taken in since. So looks begin where the bodies that waited a minute ago
 * began: what was being inserted then is committed by now, and the looks since would have found it.
 */
export type InboxFloor = {
  /** The id to look from; '0' for a full look. */
  from(): string;
  /** The day (YYYY-MM-DD) from which on; `-infinity` for a full look. */
  fromDay(): string;
  /** A look was made, under the intake lock or not. */
  looked(look: Look): void;
  /** Bodies may have come to wait again below. */
  reset(): void;
};

/**
 * `ids`: the bodies that a look by id found, the lowest first; null when it was by WABA, which leaves some out. `firstDay`:
 * that of the lowest.
 */
export type Look = { tookMs: number; ids: readonly string[] | null; firstDay: string | null };

/** The day before: clocks differ, and a body has the day on which its transaction began. */
function dayBefore(day: string): string {
  return new Date(Date.parse(day) - 86_400_000).toISOString().slice(0, 10);
}

/** The floor of one process, which begins with a full look. */
export function makeInboxFloor(lagMs = LAG_MS, now: () => number = () => performance.now()): InboxFloor {
  let notes: { atMs: number; lowest: bigint; day: string }[] = [];
  let highest = 0n;
  let floor = 0n;
  let floorDay = '-infinity';
  let nextFullMs = Number.NEGATIVE_INFINITY;
  const isFullDue = () => now() >= nextFullMs;
  return {
    from: () => (isFullDue() ? '0' : String(floor)),
    fromDay: () => (isFullDue() ? '-infinity' : floorDay),
    looked({ tookMs, ids, firstDay }) {
      const atMs = now();
      const wasFull = isFullDue();
      if (wasFull) nextFullMs = atMs + Math.max(FULL_LOOK.restMs, FULL_LOOK.restTimes * tookMs);
      if (ids === null) return;
      const last = BigInt(ids.at(-1) ?? 0);
      if (last > highest) highest = last;
      const lowest = ids[0] === undefined ? highest + 1n : BigInt(ids[0]);
      const day = dayBefore(firstDay ?? new Date().toISOString().slice(0, 10));
      const newest = notes.at(-1);
      if (newest === undefined || atMs - newest.atMs >= Math.min(NOTED_EVERY_MS, lagMs))
        notes.push({ atMs, lowest, day });
      const old = notes.findLastIndex((note) => note.atMs <= atMs - lagMs);
      notes = notes.slice(Math.max(0, old));
      const then = old < 0 ? undefined : notes[0];
      // What waits now is never passed over, however long ago it should have been taken in.
      floor = then === undefined ? 0n : then.lowest < lowest ? then.lowest : lowest;
      // An insert that was under way during a full look began on the day before at the earliest.
      const dayThen = then?.day ?? (wasFull ? day : floorDay);
      floorDay = dayThen < day ? dayThen : day;
    },
    reset() {
      notes = [];
      floor = 0n;
      floorDay = '-infinity';
      nextFullMs = Number.NEGATIVE_INFINITY;
    },
  };
}
