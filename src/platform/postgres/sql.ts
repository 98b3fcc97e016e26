import type pg from 'pg';
import { arrayLiteral, type Scalar } from './arrays.ts';

export type Binding = Scalar | readonly Scalar[];
/** By the names of a statement's `:name`, which need not be all that is given. */
export type Bindings = Readonly<Record<string, Binding>>;

/** `command`: the first word of PostgreSQL's answer, such as SELECT; `rowCount`: how many rows were read or changed. */
export type StatementResult = Pick<pg.QueryResult, 'rows' | 'rowCount' | 'command'>;

type StatementRunner = { raw(text: string, bindings?: Bindings): Promise<StatementResult> };

/** Runs one statement with `:name` bindings and returns its rows; `Row` is what the statement selects. */
export async function query<Row>(
  database: StatementRunner,
  text: string,
  bindings: Bindings = {},
): Promise<Row[]> {
  const { rows } = await database.raw(text, bindings);
  return rows;
}

/** As `query`, for a statement that gives one row at most; null: it gave none. */
export async function queryOne<Row>(
  database: StatementRunner,
  text: string,
  bindings: Bindings = {},
): Promise<Row | null> {
  const [row] = await query<Row>(database, text, bindings);
  return row ?? null;
}

/** As `queryOne`, for a statement that always gives a row. */
export async function queryOnly<Row>(
  database: StatementRunner,
  text: string,
  bindings: Bindings = {},
): Promise<Row> {
  const row = await queryOne<Row>(database, text, bindings);
  if (row === null) throw new Error(`the statement gave no row: ${text}`);
  return row;
}

/** Whether a statement gives a row. */
export async function hasRow(
  database: StatementRunner,
  text: string,
  bindings: Bindings = {},
): Promise<boolean> {
  return (await query(database, text, bindings)).length > 0;
}

/** The first column of what a statement gives. */
export async function queryColumn<Value>(
  database: StatementRunner,
  text: string,
  bindings: Bindings = {},
): Promise<Value[]> {
  const rows = await query<Record<string, Value>>(database, text, bindings);
  return rows.flatMap((row) => Object.values(row).slice(0, 1));
}

/** The first column of the first row; null: there is none, or it is null. */
export async function queryValue<Value>(
  database: StatementRunner,
  text: string,
  bindings: Bindings = {},
): Promise<Value | null> {
  const [value] = await queryColumn<Value | null>(database, text, bindings);
  return value ?? null;
}

/** Runs one statement and returns how many rows it changed. */
export async function execute(
  database: StatementRunner,
  text: string,
  bindings: Bindings = {},
): Promise<number> {
  const { rowCount } = await database.raw(text, bindings);
  return rowCount ?? 0;
}

/**
 * Deletes up to `limit` of the rows that `which` says (a condition, and after it perhaps an order), but those that are
 * locked; returns how many. Not for partitioned tables, in which a ctid is no name of a row.
 */
export async function deleteUpTo(
  database: StatementRunner,
  limit: number,
  table: string,
  which: string,
  bindings: Bindings = {},
): Promise<number> {
  const rows = `select ctid from ${table} where ${which} limit :limit for update skip locked`;
  return await execute(database, `delete from ${table} where ctid = any (array(${rows}))`, {
    ...bindings,
    limit,
  });
}

/** One with a name is parsed once per connection. */
export type Statement = { name?: string; text: string; values: Binding[] };

type Prepared = { name: string | undefined; text: string; names: string[] };

/** Statements are written in the code, so they are few; made-up ones must not fill the server's memory. */
const MAX_NAMED = 1_000;

const known = new Map<string, Prepared>();

/** A statement that each connection parses once. Every occurrence of a name is a separate parameter. */
export function prepared(text: string, bindings: Bindings = {}): Statement {
  const statement = known.get(text) ?? translate(text);
  const { name, names } = statement;
  const values = valuesOf(names, bindings).map((value) =>
    Array.isArray(value) ? (arrayLiteral(value) ?? value) : value,
  );
  return { text: statement.text, values, ...(name === undefined ? {} : { name }) };
}

function valuesOf(names: readonly string[], bindings: Bindings): Binding[] {
  return names.map((name) => {
    const value = bindings[name];
    if (value === undefined) throw new Error(`the statement has no value for :${name}`);
    return value;
  });
}

function translate(text: string): Prepared {
  const names: string[] = [];
  const translated = text.replace(
    /(?<![:\w]):([a-zA-Z]\w*)/g,
    (_match, name: string) => `$${names.push(name)}`,
  );
  const name = known.size < MAX_NAMED ? `s${known.size}` : undefined;
  const statement = { name, text: translated, names };
  if (name !== undefined) known.set(text, statement);
  return statement;
}
