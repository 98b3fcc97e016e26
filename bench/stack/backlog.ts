import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

/** Bodies not yet taken in and deliveries still open, those of the `except` endpoints left out. */
async function countOpenWork(database: Database, except: readonly string[]): Promise<number> {
  const [row] = await query<{ open: string }>(
    database,
    `select (select count(*) from delivery_queue where endpoint_id <> all (cast(:except as bigint[])))
          + (select count(*) from inbox where state = 'new') as open`,
    { except },
  );
  return Number(row?.open ?? 0);
}

const POLL_MS = 100;

/** Waits until nothing is open; returns what still is after `timeoutMs`. */
export async function drainOpenWork(
  database: Database,
  except: readonly string[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<number> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const open = await countOpenWork(database, except);
    signal.throwIfAborted();
    if (open === 0 || performance.now() > deadline) return open;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
