import type { Database } from './database.ts';
import { query, queryValue } from './sql.ts';

export type IdSequence = { table: string; column: string; sequence: string };

export async function listIdSequences(database: Database): Promise<IdSequence[]> {
  return await query<IdSequence>(
    database,
    `select c.relname as "table", a.attname as "column",
            pg_get_serial_sequence(quote_ident(c.relname), a.attname) as sequence
       from pg_attribute a join pg_class c on c.oid = a.attrelid
      where a.attidentity <> '' and not c.relispartition and c.relnamespace = current_schema()::regnamespace
      order by c.relname, a.attname`,
  );
}

export async function readLastId(database: Database, { sequence }: IdSequence): Promise<bigint> {
  const reading = `select case when is_called then last_value else last_value - 1 end from ${sequence}`;
  return BigInt((await queryValue<string>(database, reading)) ?? 0);
}

/** The greatest id in the table; 0: it is empty. */
export async function readGreatestId(database: Database, { table, column }: IdSequence): Promise<bigint> {
  // The bodies of a day are found by the day; their ids grow with it.
  const order = table === 'inbox' ? `received_day desc, ${column} desc` : `${column} desc`;
  const reading = `select ${column} from ${table} order by ${order} limit 1`;
  return BigInt((await queryValue<string>(database, reading)) ?? 0);
}

/** Has the next id be greater than this one; never takes it back. */
export async function passIds(database: Database, { sequence }: IdSequence, upTo: bigint): Promise<void> {
  await query(
    database,
    `select setval(cast(:sequence as regclass), greatest(cast(:upTo as bigint), last_value)) from ${sequence}`,
    { sequence, upTo: String(upTo) },
  );
}
