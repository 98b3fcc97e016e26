import type { Transaction } from './database.ts';
import { query } from './sql.ts';

/** Key of the advisory lock that makes intake one at a time over all worker processes. */
const INTAKE_LOCK = 7_340_001;

/**
 * Takes the intake lock for the rest of the transaction; false when another process has it.
 * It ends with the transaction, also when its process dies or freezes (the server ends idle transactions).
 */
export async function tryIntakeLock(trx: Transaction): Promise<boolean> {
  const [row] = await query<{ locked: boolean }>(
    trx,
    'select pg_try_advisory_xact_lock(?::bigint) as locked',
    [INTAKE_LOCK],
  );
  return row?.locked === true;
}
