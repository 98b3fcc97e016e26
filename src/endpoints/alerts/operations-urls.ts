import type { Database } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';

/** Where a WABA's alerts go; both members are null when it has no such URL. */
export type OperationsUrl = { url: string | null; secretSealed: string | null };

/** Null when there is no such WABA. */
export async function findOperationsUrl(database: Database, wabaId: string): Promise<OperationsUrl | null> {
  const [row] = await query<OperationsUrl>(
    database,
    'select operations_url as url, operations_secret_sealed as "secretSealed" from wabas where waba_id = ?',
    [wabaId],
  );
  return row ?? null;
}

/** Changes the URL alone: the secret is not written back, because it may have been encrypted anew since it was read. */
export async function moveOperationsUrl(database: Database, wabaId: string, url: string): Promise<void> {
  await execute(database, 'update wabas set operations_url = ? where waba_id = ?', [url, wabaId]);
}

export async function saveOperationsUrl(
  database: Database,
  wabaId: string,
  { url, secretSealed }: OperationsUrl,
): Promise<void> {
  await execute(
    database,
    'update wabas set operations_url = ?, operations_secret_sealed = ? where waba_id = ?',
    [url, secretSealed, wabaId],
  );
}
