import type { ObjectStore } from './object-store/object-store.ts';
import { ObjectStoreUnavailable } from './object-store/store-errors.ts';
import type { Transaction } from './postgres/database.ts';
import { execute } from './postgres/sql.ts';

// What the rooms have in common that erase their own tables when an erasure asks them to.

export type ErasureCounts = Readonly<Record<string, number>>;

/** A batch that has to wait for something. Nothing of it was erased. */
export class NotYetErased extends Error {
  readonly waitMs: number;

  constructor(reason: string, waitMs = 1_000) {
    super(reason);
    this.name = 'NotYetErased';
    this.waitMs = waitMs;
  }
}

export function sumOf(...all: readonly (ErasureCounts | undefined)[]): ErasureCounts {
  const sum: Record<string, number> = {};
  for (const counts of all) {
    for (const [name, count] of Object.entries(counts ?? {}))
      if (count > 0) sum[name] = (sum[name] ?? 0) + count;
  }
  return sum;
}

const REMOVALS_AT_ONCE = 8;
const STORE_AWAY_WAIT_MS = 10_000;

export type FoundFile = { id: string; key: string | null };

/** Removes the objects of files; returns the ids of their rows. Throws NotYetErased while the store is away. */
export async function removeFound(
  objectStore: Pick<ObjectStore, 'remove'>,
  files: readonly FoundFile[],
): Promise<string[]> {
  const keys = files.flatMap(({ key }) => key ?? []);
  try {
    for (let at = 0; at < keys.length; at += REMOVALS_AT_ONCE)
      await Promise.all(keys.slice(at, at + REMOVALS_AT_ONCE).map((key) => objectStore.remove(key)));
  } catch (error) {
    if (!(error instanceof ObjectStoreUnavailable)) throw error;
    throw new NotYetErased('The object store is away.', STORE_AWAY_WAIT_MS);
  }
  return files.map(({ id }) => id);
}

/** A table of a room, the name under which its rows are counted, and which of them are a WABA's. */
export type ErasedTable = {
  table: string;
  count: string;
  key: string;
  where?: string;
  /** Its rows name the WABA by a phone number only. */
  numbers?: boolean;
};

/** Erases up to `limit` rows of a WABA; returns how many went. */
export async function eraseRowsOfWaba(
  trx: Transaction,
  { table, key, where = 'true', numbers = false }: ErasedTable,
  wabaId: string,
  limit: number,
): Promise<number> {
  const own = numbers
    ? 'phone_number_id in (select phone_number_id from phone_numbers where waba_id = :wabaId)'
    : 'waba_id = :wabaId';
  return await execute(
    trx,
    `delete from ${table} where (${key}) in (select ${key} from ${table} where ${own} and ${where} limit ${limit})`,
    { wabaId },
  );
}

/** Columns of a room in which users stand by their e-mail address or name. */
export type NamedIn = readonly (readonly [table: string, column: string])[];
