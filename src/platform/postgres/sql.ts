import type { Database } from './database.ts';
import type { Bindings } from './statement.ts';

/** Runs one statement with `?` or `:name` bindings and returns its rows; `Row` is what the statement selects. */
export async function query<Row>(database: Database, text: string, bindings: Bindings = []): Promise<Row[]> {
  const { rows } = await database.raw(text, bindings);
  return rows;
}

/** Runs one statement and returns how many rows it changed. */
export async function execute(database: Database, text: string, bindings: Bindings = []): Promise<number> {
  const { rowCount } = await database.raw(text, bindings);
  return rowCount ?? 0;
}
