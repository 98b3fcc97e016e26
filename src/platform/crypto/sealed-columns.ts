import type { Database } from '../postgres/database.ts';
import { execute, query } from '../postgres/sql.ts';
import type { SecretBox } from './secret-box.ts';
import { SEALED_COLUMNS, type SealedColumn } from './secret-places.ts';

/** A database with the box that seals and opens its secret columns. */
export type SealedDatabase = { database: Database; secretBox: SecretBox };

/** How many sealed texts of a column an encryption key made. */
export type SealedCount = { table: string; column: string; keyId: string; count: number };

/** A sealed text and the row that it is in. */
export type SealedText = { id: string; sealed: string };

/** `v1:keyId:…` */
const keyIdOf = (column: string) => `split_part(${column}, ':', 2)`;

/** What every key is needed for, over all tables. */
export async function countSealed(database: Database): Promise<SealedCount[]> {
  const counts = SEALED_COLUMNS.map(
    ({ table, column }) =>
      `select '${table}' as table, '${column}' as column, ${keyIdOf(column)} as "keyId", count(*)::integer as count
         from ${table} where ${column} is not null group by 3`,
  );
  return await query<SealedCount>(database, `${counts.join(' union all ')} order by 1, 2, 3`);
}

/** One sealed text of every key in a column, to see whether it opens. */
export async function sampleSealed(
  database: Database,
  { table, column, idColumn }: SealedColumn,
): Promise<SealedText[]> {
  return await query<SealedText>(
    database,
    `select distinct on (${keyIdOf(column)}) cast(${idColumn} as text) as id, ${column} as sealed
       from ${table} where ${column} is not null order by ${keyIdOf(column)}`,
  );
}

/** Sealed texts of a column that another key than `keyId` made, in the order of their rows' keys. */
export async function readSealedByOthers(
  database: Database,
  { table, column, idColumn, idType }: SealedColumn,
  { keyId, afterId, limit }: { keyId: string; afterId: string | null; limit: number },
): Promise<SealedText[]> {
  const after = afterId === null ? '' : `and ${idColumn} > cast(:afterId as ${idType})`;
  return await query<SealedText>(
    database,
    `select cast(${idColumn} as text) as id, ${column} as sealed from ${table}
      where ${column} is not null and ${keyIdOf(column)} <> :keyId ${after} order by ${table}.${idColumn} limit :limit`,
    { keyId, limit, ...(afterId !== null && { afterId }) },
  );
}

/** Puts a sealed text in the place of another; false when that is not there any more. */
export async function replaceSealed(
  database: Database,
  { table, column, idColumn, idType }: SealedColumn,
  { id, sealed, resealed }: SealedText & { resealed: string },
): Promise<boolean> {
  const changed = await execute(
    database,
    `update ${table} set ${column} = :resealed
      where ${idColumn} = cast(:id as ${idType}) and ${column} = :sealed`,
    { id, sealed, resealed },
  );
  return changed === 1;
}
