import type { Database } from '../../platform/postgres/database.ts';
import { beginSweep, endSweep, keepPlace, listRepeats, type Sweep } from '../intake/erased-repeats.ts';
import { type BodyPlace, eraseRepeats, FIRST_BODY } from './erase-bodies.ts';

/**
 * Goes over the raw bodies of WABAs of which upstream repeated something erased: intake made nothing of it, and here it
 * goes out of the bodies too. For housekeeping. Each note stays until its bodies are done, in this turn or a later one.
 */
export async function sweepRepeats(
  { database }: { database: Database },
  ending: AbortSignal = new AbortController().signal,
): Promise<void> {
  for (const wabaId of await listRepeats(database)) {
    if (ending.aborted) return;
    const sweep = await beginSweep(database, wabaId);
    if (sweep === null) continue;
    const place = await sweepWaba(database, sweep, ending);
    if (place === null) await endSweep(database, sweep);
    else await keepPlace(database, wabaId, place);
  }
}

/** A body is stored a little before intake notes what it repeats. */
const EARLIER_MS = 3_600_000;

/** Returns where it was cut off; null: it has come to the end. */
async function sweepWaba(
  database: Database,
  { wabaId, since, day, id }: Sweep,
  ending: AbortSignal,
): Promise<BodyPlace | null> {
  const from = new Date(since.getTime() - EARLIER_MS);
  let place: BodyPlace | null =
    day === null || id === null ? { ...FIRST_BODY, day: dayBefore(from) } : { day, id };
  while (place !== null && !ending.aborted) {
    const after: BodyPlace = place;
    place = await database.transaction((trx) => eraseRepeats(trx, { wabaId, since: from }, after));
  }
  return place;
}

function dayBefore(time: Date): string {
  return new Date(time.getTime() - 86_400_000).toISOString().slice(0, 10);
}
