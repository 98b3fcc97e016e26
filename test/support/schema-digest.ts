import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

const IS_OURS = `relnamespace = cast('public' as regnamespace) and relname !~ '^schema_migrations'`;
const OURS = `select oid from pg_class where ${IS_OURS}`;

/** A statement per kind of thing in a database; each gives lines of text. */
const KINDS = {
  relations: `select format('%s %s %s of %s %s, options %s, grants %s', relkind, relpersistence, relname,
                coalesce((select inhparent::regclass::text from pg_inherits where inhrelid = c.oid and relkind <> 'i'), '-'),
                pg_get_expr(relpartbound, oid), array_to_string(reloptions, ','), array_to_string(relacl, ','))
                from pg_class c where ${IS_OURS}`,
  columns: `select format('%s.%s #%s %s%s default %s identity %s storage %s statistics %s options %s', attrelid::regclass,
              attname, row_number() over (partition by attrelid order by attnum), format_type(atttypid, atttypmod),
              case when attnotnull then ' not null' end, pg_get_expr(adbin, adrelid), attidentity, attstorage,
              attstattarget, array_to_string(attoptions, ','))
              from pg_attribute a left join pg_attrdef d on d.adrelid = attrelid and adnum = attnum
             where attrelid in (${OURS}) and attnum > 0 and not attisdropped`,
  indexes: `select pg_get_indexdef(indexrelid) || case when indisvalid then '' else ' invalid' end from pg_index
             where indrelid in (${OURS})`,
  constraints: `select format('%s %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated)
                  from pg_constraint where conrelid in (${OURS})`,
  sequences: `select to_jsonb(s)::text from pg_sequences s where schemaname = 'public' and sequencename !~ '^schema_migrations'`,
  triggers: `select pg_get_triggerdef(oid) || ' ' || tgenabled::text from pg_trigger where tgrelid in (${OURS}) and not tgisinternal`,
  functions: `select pg_get_functiondef(oid) || coalesce(array_to_string(proacl, ','), '') from pg_proc
               where pronamespace = cast('public' as regnamespace)`,
  types: `select typname from pg_type
           where typnamespace = cast('public' as regnamespace) and typname !~ '^_{0,1}schema_migrations'`,
  statistics: 'select stxname::text from pg_statistic_ext',
  extensions: 'select extname::text from pg_extension',
};

/** All that the schema of a database consists of, without rows and without knex's own tables, line by line. */
export async function schemaDigest(database: Database): Promise<Record<keyof typeof KINDS, string[]>> {
  const digest: Record<string, string[]> = {};
  for (const [kind, statement] of Object.entries(KINDS)) {
    const rows = await query<{ line: string }>(
      database,
      `select line from (${statement}) as found (line) order by line`,
    );
    digest[kind] = rows.map(({ line }) => line);
  }
  return digest;
}
