import type { Knex } from 'knex';

/**
 * Makes an index while the table is written to, in a migration without a transaction. What an earlier try left, which
 * was cut off, is of no use and is made again.
 */
export async function createIndexConcurrently(
  migrator: Knex,
  name: string,
  definition: string,
): Promise<void> {
  const { rows } = await migrator.raw(
    'select indisvalid as valid from pg_index where indexrelid = to_regclass(:name)',
    { name },
  );
  if (rows[0]?.valid === true) return;
  await migrator.raw(`drop index concurrently if exists ${name}`);
  await migrator.raw(`create index concurrently ${name} ${definition}`);
}
