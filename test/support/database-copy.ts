import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

/** Keeps all rows of a database as they are now; what is returned puts them back, as a restore of a backup does. Sequences go on. */
export async function copyOfRows(database: Database): Promise<() => Promise<void>> {
  const tables = await query<{ name: string; columns: string }>(
    database,
    `select quote_ident(c.relname) as name,
            (select string_agg(quote_ident(a.attname), ', ') from pg_attribute a
              where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
       from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`,
  );
  await database.transaction(async (trx) => {
    await trx.raw('set transaction isolation level repeatable read');
    await trx.raw('create schema before');
    for (const { name } of tables) await trx.raw(`create table before.${name} as table public.${name}`);
  });
  return async () =>
    await database.transaction(async (trx) => {
      await trx.raw(`set local session_replication_role = 'replica'`);
      for (const { name, columns } of tables) {
        await trx.raw(`delete from public.${name}`);
        await trx.raw(
          `insert into public.${name} (${columns}) overriding system value select ${columns} from before.${name}`,
        );
      }
      await trx.raw('drop schema before cascade');
    });
}
