import type { Database } from '../../../platform/postgres/database.ts';
import { countRecipients, type RecipientCounts } from './broadcast-recipients.ts';
import type { BroadcastRow } from './broadcast-store.ts';

/** So many are counted at each look. */
const COUNTED_EACH_TIME = 2_000;
/** Counts of more may be as old as so many times what it took to count them: however many look, that is a twentieth of one connection. */
const AGE_TIMES = 20;
/** The broadcasts of a process whose counts are kept. */
const MOST_KEPT = 200;

type Kept = {
  key: string;
  counts: RecipientCounts | null;
  freshUntilMs: number;
  counting: Promise<RecipientCounts> | null;
};

const keptOf = new WeakMap<Database, Map<string, Kept>>();

/** How far the recipients are. What is done with the broadcast shows at once, what becomes of its messages a little later where they are many. */
export async function recentCounts(
  database: Database,
  broadcast: Pick<BroadcastRow, 'id' | 'state' | 'recipients' | 'runningSince'>,
): Promise<RecipientCounts> {
  const { id, state, recipients, runningSince } = broadcast;
  if (recipients <= COUNTED_EACH_TIME) return await countRecipients(database, id);
  const all = keptOf.get(database) ?? new Map<string, Kept>();
  keptOf.set(database, all);
  const key = JSON.stringify([state, recipients, runningSince]);
  const known = all.get(id);
  const kept = known?.key === key ? known : { key, counts: null, freshUntilMs: 0, counting: null };
  if (kept.counts !== null && performance.now() < kept.freshUntilMs) return kept.counts;
  all.delete(id);
  all.set(id, kept);
  for (const oldest of all.keys()) {
    if (all.size <= MOST_KEPT) break;
    all.delete(oldest);
  }
  kept.counting ??= count(database, id, kept);
  return await kept.counting;
}

async function count(database: Database, id: string, kept: Kept): Promise<RecipientCounts> {
  const startMs = performance.now();
  try {
    kept.counts = await countRecipients(database, id);
    const endMs = performance.now();
    kept.freshUntilMs = endMs + AGE_TIMES * (endMs - startMs);
    return kept.counts;
  } finally {
    kept.counting = null;
  }
}
