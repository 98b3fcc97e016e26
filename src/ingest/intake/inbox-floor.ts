import { makeLowWater } from '../../platform/low-water.ts';

/** An insert that is under way must end within this time, or its body waits for the next full look. */
const LAG_MS = 60_000;

/** Full looks may take a twentieth of the time. */
const REST = { times: 20, leastMs: 10_000 };

const DAY_MS = 86_400_000;

/** Where looks for new bodies begin: two low waters, one of their ids and one of their days. */
export type InboxFloor = {
  /** The id to look from; '0' for a full look. */
  from(): string;
  /** The day (YYYY-MM-DD) from which on; `-infinity` for a full look. */
  fromDay(): string;
  looked(look: Look): void;
  reset(): void;
};

/**
 * `ids`: the bodies that a look by id found, the lowest first; null when it was by WABA, which leaves some out. `firstDay`:
 * that of the lowest.
 */
export type Look = { tookMs: number; ids: readonly string[] | null; firstDay: string | null };

/** The day before, counted from 1970: clocks differ, and a body has the day on which its transaction began. */
function dayBefore(atMs: number): number {
  return Math.floor(atMs / DAY_MS) - 1;
}

export function makeInboxFloor(lagMs = LAG_MS, now: () => number = () => performance.now()): InboxFloor {
  const idsFrom = makeLowWater({ rest: REST, lagMs, now });
  const daysFrom = makeLowWater({ rest: REST, now });
  let end = 1;
  return {
    from: () => String(idsFrom.from() ?? 0),
    fromDay() {
      const day = daysFrom.from();
      return day === null ? '-infinity' : new Date(day * DAY_MS).toISOString().slice(0, 10);
    },
    looked({ tookMs, ids, firstDay }) {
      end = Math.max(end, Number(ids?.at(-1) ?? 0) + 1);
      const oldest = ids?.[0] === undefined ? null : Number(ids[0]);
      idsFrom.looked({ tookMs, seen: ids && { end, oldest } });
      const oldestDay = firstDay === null ? null : dayBefore(Date.parse(firstDay));
      daysFrom.looked({ tookMs, seen: ids && { end: dayBefore(Date.now()), oldest: oldestDay } });
    },
    reset() {
      idsFrom.reset();
      daysFrom.reset();
    },
  };
}
