import type { Knex } from 'knex';
import type { Database } from './database.ts';

type Scalar = string | number | boolean | null | Date | Buffer;
export type Binding = Scalar | readonly Scalar[];

/** Runs one statement with `?` or `:name` bindings and returns its rows; `Row` is what the statement selects. */
export async function query<Row>(
  database: Database,
  text: string,
  bindings: readonly Binding[] | Readonly<Record<string, Binding>> = [],
): Promise<Row[]> {
  const { rows } = await database.raw<{ rows: Row[] }>(text, bindings as Knex.RawBinding[]);
  return rows;
}

/** Runs one statement and returns how many rows it changed. */
export async function execute(
  database: Database,
  text: string,
  bindings: readonly Binding[] | Readonly<Record<string, Binding>> = [],
): Promise<number> {
  const { rowCount } = await database.raw<{ rowCount: number | null }>(text, bindings as Knex.RawBinding[]);
  return rowCount ?? 0;
}
