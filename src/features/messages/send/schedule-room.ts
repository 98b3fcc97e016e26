import type { Database } from '../../../platform/postgres/database.ts';

/** A count of many rows is good for so long, unless what it leaves is used up before. */
const COUNTED_FOR_MS = 60_000;

/** Of a WABA that is full: messages leave and are cancelled. */
const FULL_FOR_MS = 1_000;

/** Of the room that is left, this process takes no more than this part, or a few, before it counts again: others take some too. */
const PART = 1 / 4;
const LEAST = 100;

const MOST_REMEMBERED = 10_000;

type Room = { isFull: boolean; left: number; untilMs: number };

const rooms = new WeakMap<Database, Map<string, Room>>();

/**
 * Whether a WABA may have one more of something of which it may have `most`; takes that place. Counting costs as much as there are, so it is
 * done rarely: a WABA may come to have some hundreds more.
 */
export async function takeRoom(
  database: Database,
  { wabaId, most }: { wabaId: string; most: number },
  count: () => Promise<number>,
  nowMs = performance.now(),
): Promise<boolean> {
  const known = rooms.get(database) ?? new Map<string, Room>();
  rooms.set(database, known);
  let room = known.get(wabaId);
  if (room === undefined || nowMs >= room.untilMs || (!room.isFull && room.left <= 0)) {
    const free = most - (await count());
    const isFull = free <= 0;
    const untilMs = nowMs + (isFull ? FULL_FOR_MS : COUNTED_FOR_MS);
    room = { isFull, left: isFull ? 0 : Math.max(LEAST, Math.floor(free * PART)), untilMs };
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(wabaId, room);
  }
  room.left -= 1;
  return !room.isFull;
}
