import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

/** Counters that every request moves, whatever comes of it. */
const UNCOMPARED_TABLES = /rate_limit|audit_chain/;
/** Refused requests are counted in the audit log, a minute later. */
const COMPARED_ROWS = `coalesce(to_jsonb(one) ->> 'action', '') not like '%.refused'`;
/** Noted beside requests, at most once a minute. */
const UNCOMPARED_COLUMN = 'last_used_at';

/** Row count and checksum of every table, by name: equal when nothing was changed in between. */
export async function databaseDigest(database: Database): Promise<Record<string, string>> {
  const tables = (await tablesOf(database)).filter((name) => !UNCOMPARED_TABLES.test(name));
  const parts = tables.map(
    (
      name,
    ) => `select '${name}' as name, count(*) || ' ' || md5(coalesce(string_agg(line, '' order by line), ''))
                 as digest
                 from (select md5(cast(to_jsonb(one) - '${UNCOMPARED_COLUMN}' as text)) as line from "${name}" one where ${COMPARED_ROWS}) l`,
  );
  const rows = await query<{ name: string; digest: string }>(database, parts.join(' union all '));
  return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
}

/** Partitions are part of their tables. */
async function tablesOf(database: Database): Promise<string[]> {
  const rows = await query<{ name: string }>(
    database,
    `select relname as name from pg_class
      where relkind in ('r', 'p') and not relispartition and relnamespace = cast('public' as regnamespace) order by 1`,
  );
  return rows.map(({ name }) => name);
}

const ID_COLUMN = /(^|_)(id|uuid|token)$/;
/** Those of one's own, and of what is not the WABA's. */
const NO_ID_COLUMN = /^(waba_id|tenant_id)$/;

/**
 * Everything in the database that names an object of a WABA, in the forms in which the API may show it. Found by the
 * names of columns, so that a new table is covered too.
 */
export async function objectIdsOf(database: Database, wabaId: string): Promise<string[]> {
  const tables = await query<{ name: string }>(
    database,
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'waba_id'
      where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = cast('public' as regnamespace) order by 1`,
  );
  const ids = new Set<string>();
  for (const { name } of tables) {
    const rows = await query<{ row: Record<string, unknown> }>(
      database,
      `select to_jsonb(one) as row from "${name}" one where waba_id = :wabaId`,
      { wabaId },
    );
    for (const [column, value] of rows.flatMap(({ row }) => Object.entries(row))) {
      if (!ID_COLUMN.test(column) || NO_ID_COLUMN.test(column) || value === null) continue;
      for (const form of publicForms(String(value))) ids.add(form);
    }
  }
  return [...ids];
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const PREFIXES = ['evt', 'dlv', 'alr', 'med'];

function publicForms(id: string): string[] {
  if (!UUID.test(id)) return [id];
  return [id, ...PREFIXES.map((prefix) => `${prefix}_${id.replaceAll('-', '')}`)];
}
