import { type Database, type Transaction, undone } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

/**
 * The daily partitions that the statements of `run` open once they are planned, by name. Needs a database with one connection,
 * because plans are those of a connection. What `run` changes is undone, both times that it runs.
 */
export async function partitionsOpened(
  database: Database,
  run: (trx: Transaction) => Promise<unknown>,
): Promise<string[]> {
  let opened: { name: string }[] = [];
  // Who makes a plan opens all; who has one locks all tables, but only the indexes of those that it opens.
  for (const _turn of ['makes plans', 'uses them'])
    await undone(database, async (trx) => {
      await run(trx);
      opened = await query(
        trx,
        `select distinct cast(i.indrelid as regclass)::text as name
           from pg_locks l join pg_index i on i.indexrelid = l.relation
          where l.pid = pg_backend_pid() and cast(i.indrelid as regclass)::text ~ '^[a-z]+_([0-9]{8}|default)$'
          order by name`,
      );
    });
  return opened.map(({ name }) => name);
}
