import type { Duplex } from 'node:stream';
import pg from 'pg';
import { serialize } from 'pg-protocol';

/** A value that a parameter, or an element of an array, may have. */
type Scalar = string | number | boolean | null | Date | Buffer;

export type Binding = Scalar | readonly Scalar[];
/** In the order of the `?` of a statement, or by the names of its `:name`, which need not be all that is given. */
export type Bindings = readonly Binding[] | Readonly<Record<string, Binding>>;

/** `command`: the first word of PostgreSQL's answer, such as SELECT; `rowCount`: how many rows were read or changed. */
export type StatementResult = Pick<pg.QueryResult, 'rows' | 'rowCount' | 'command'>;

/** What runs statements: the pool, or one transaction. */
type StatementRunner = { raw(text: string, bindings?: Bindings): Promise<StatementResult> };

/** Runs one statement with `?` or `:name` bindings and returns its rows; `Row` is what the statement selects. */
export async function query<Row>(
  database: StatementRunner,
  text: string,
  bindings: Bindings = [],
): Promise<Row[]> {
  const { rows } = await database.raw(text, bindings);
  return rows;
}

/** Runs one statement and returns how many rows it changed. */
export async function execute(
  database: StatementRunner,
  text: string,
  bindings: Bindings = [],
): Promise<number> {
  const { rowCount } = await database.raw(text, bindings);
  return rowCount ?? 0;
}

/** One with a name is parsed once per connection. */
export type Statement = { name?: string; text: string; values: Binding[] };

type Prepared = { name: string | undefined; text: string; names: string[] | null };

/** Statements are written in the code, so they are few; made-up ones must not fill the server's memory. */
const MAX_NAMED = 1_000;

const known = new Map<string, Prepared>();

/** A statement that each connection parses once. Every occurrence of a name is a parameter of its own. */
export function prepared(text: string, bindings: Bindings): Statement {
  const statement = known.get(text) ?? translate(text, Array.isArray(bindings));
  const { name, names } = statement;
  const given = names === null ? (bindings as readonly Binding[]) : valuesOf(names, bindings);
  const values = given.map((value) => (Array.isArray(value) ? (arrayLiteral(value) ?? value) : value));
  return { text: statement.text, values, ...(name === undefined ? {} : { name }) };
}

function valuesOf(names: readonly string[], bindings: Bindings): Binding[] {
  const byName = bindings as Readonly<Record<string, Binding>>;
  return names.map((name) => {
    const value = byName[name];
    if (value === undefined) throw new Error(`the statement has no value for :${name}`);
    return value;
  });
}

function translate(text: string, byPosition: boolean): Prepared {
  const names: string[] = [];
  let count = 0;
  const translated = byPosition
    ? text.replace(/\?/g, () => `$${++count}`)
    : text.replace(/(?<![:\w]):([a-zA-Z]\w*)/g, (_match, name: string) => `$${names.push(name)}`);
  const name = known.size < MAX_NAMED ? `s${known.size}` : undefined;
  const statement = { name, text: translated, names: byPosition ? null : names };
  if (name !== undefined) known.set(text, statement);
  return statement;
}

// Arrays in forms that copy each byte once: the driver escapes every element twice and doubles bytes by writing them
// in hex, which was a fifth of all that a busy worker allocated.

/** Needs no quotes within an array, whatever its type. */
const PLAIN = /^[\w.:+/-]+$/;

/**
 * The text form of an array of short values, such as ids; PostgreSQL reads it as whatever type the statement says.
 * Undefined for elements whose text is the driver's business (times, bytes).
 */
function arrayLiteral(elements: readonly Scalar[]): string | undefined {
  let literal = '';
  for (const element of elements) {
    if (typeof element === 'object' && element !== null) return undefined;
    literal += literal === '' ? elementLiteral(element) : `,${elementLiteral(element)}`;
  }
  return `{${literal}}`;
}

function elementLiteral(element: string | number | boolean | null): string {
  if (typeof element !== 'string') return element === null ? 'NULL' : String(element);
  if (PLAIN.test(element) && !isNullWord(element)) return element;
  return `"${element.replaceAll(/["\\]/g, '\\$&')}"`;
}

function isNullWord(text: string): boolean {
  return text.length === 4 && text.toUpperCase() === 'NULL';
}

/** The binary form of a `text[]`, for long texts. The statement must say that type: nothing is converted. */
export function textArray(texts: readonly (string | null)[]): Buffer {
  const sizes = texts.map((text) => (text === null ? NULL_SIZE : Buffer.byteLength(text)));
  return binaryArray(OIDS.text, sizes, (target, offset, index) => target.write(texts[index] ?? '', offset));
}

/** The binary form of a `bytea[]`. The statement must say that type. */
export function byteaArray(values: readonly (Buffer | null)[]): Buffer {
  const sizes = values.map((bytes) => (bytes === null ? NULL_SIZE : bytes.length));
  return binaryArray(OIDS.bytea, sizes, (target, offset, index) => values[index]?.copy(target, offset));
}

/** From pg_type; they never change. */
const OIDS = { text: 25, bytea: 17 };

const NULL_SIZE = -1;
const HEADER_BYTES = 12;
const DIMENSION_BYTES = 8;
const SIZE_BYTES = 4;

/** One dimension from 1, in the form of array_recv; an empty array has none. */
function binaryArray(
  elementOid: number,
  sizes: readonly number[],
  writeElement: (target: Buffer, offset: number, index: number) => void,
): Buffer {
  const isEmpty = sizes.length === 0;
  const bytes = sizes.reduce((sum, size) => sum + SIZE_BYTES + Math.max(size, 0), HEADER_BYTES);
  const target = Buffer.allocUnsafe(isEmpty ? bytes : bytes + DIMENSION_BYTES);
  let offset = target.writeInt32BE(isEmpty ? 0 : 1, 0);
  offset = target.writeInt32BE(sizes.includes(NULL_SIZE) ? 1 : 0, offset);
  offset = target.writeInt32BE(elementOid, offset);
  if (isEmpty) return target;
  offset = target.writeInt32BE(sizes.length, offset);
  offset = target.writeInt32BE(1, offset);
  for (const [index, size] of sizes.entries()) {
    offset = target.writeInt32BE(size, offset);
    if (size === NULL_SIZE) continue;
    writeElement(target, offset, index);
    offset += size;
  }
  return target;
}

/** The statements of one connection, in the order in which they are given. */
export type Statements = {
  /**
   * Those of one tick are a group: they leave in one write, the server responds to them in one, and after the first that
   * fails it skips the rest, which then fail with a SkippedStatementError. Side by side without a group, each of them costs both
   * ends a write, a read and a wake-up of its own.
   */
  run(statement: Statement): Promise<StatementResult>;
  /** A text as it is, also several statements in one. */
  runText(text: string): Promise<StatementResult>;
};

/** A statement that did not run because the one before it in its group failed, which is its cause. */
export class SkippedStatementError extends Error {
  /** The SQLSTATE of the cause. */
  readonly code: string | undefined;
  constructor(cause: pg.DatabaseError) {
    super(`skipped behind a statement that failed: ${cause.message}`, { cause });
    this.name = 'SkippedStatementError';
    this.code = cause.code;
  }
}

export function statementsOn(client: pg.PoolClient): Statements {
  let waiting: Member[] = [];
  const leave = () => {
    if (waiting.length > 0) client.query(new StatementGroup(waiting));
    waiting = [];
  };
  return {
    run: (statement) =>
      new Promise((resolve, reject) => {
        if (waiting.length === 0) process.nextTick(leave);
        waiting.push({ statement, columns: null, result: newResult(), failure: null, resolve, reject });
      }),
    runText: (text) => {
      leave();
      return client.query(text);
    },
  };
}

/** The driver's own result, of which its types show less than it has. */
type Result = StatementResult & {
  addFields(fields: readonly { name: string; dataTypeID: number }[]): void;
  parseRow(fields: readonly (string | null)[]): unknown;
  addCommandComplete(message: { text: string }): void;
};

const { Result, utils } = pg as unknown as {
  Result: new (rowMode: string, types: typeof pg.types) => Result;
  utils: { prepareValue: (value: Binding) => unknown };
};

function newResult(): Result {
  return new Result('', pg.types);
}

type Member = {
  statement: Statement;
  /** Reads its rows; null until the server has described them. */
  columns: Result | null;
  result: Result;
  /** Why it failed on this side: its values cannot be sent, or its rows cannot be read. */
  failure: Error | null;
  resolve: (result: StatementResult) => void;
  reject: (error: Error) => void;
};

/** What of the driver's connection is used here. */
type Wire = pg.Connection & {
  stream: Duplex;
  /** By name. The driver moves them here from `submittedNamedStatements` when the server has parsed them. */
  parsedStatements: Record<string, string | undefined>;
  submittedNamedStatements: Record<string, string | undefined>;
};

/** What the named statements of a connection return: the server is asked once. */
const described = new WeakMap<Wire, Map<string, Result>>();

/** Sent in place of a statement whose values cannot be: the server must fail there, and with it the transaction. */
const REFUSED = serialize.parse({ text: 'values that cannot be sent' });

/**
 * For the driver it is one query. `name` and `text` are those of the statement whose response is read: by them the
 * driver notes what has been parsed.
 */
class StatementGroup extends pg.Query {
  declare name: string | undefined;
  declare text: string;
  readonly #members: readonly Member[];
  #columns = new Map<string, Result>();
  #current = 0;

  constructor(members: readonly Member[]) {
    super({ text: '' });
    this.#members = members;
    this.#turnTo(0);
  }

  callback = (error: Error | null): void => {
    // Behind the last of them the server commits what has no transaction of its own: that failed.
    const isOfCommit = this.#current === this.#members.length;
    for (const [index, { result, failure, resolve, reject }] of this.#members.entries()) {
      const isDone = index < this.#current && !isOfCommit;
      const reason = failure ?? (isDone ? null : this.#reasonOf(index, error));
      if (reason === null) resolve(result);
      else reject(reason);
    }
  };

  /** An error that several statements shared would show the place of the last of them. */
  #reasonOf(index: number, error: Error | null): Error | null {
    const isBehind = index > this.#current && error instanceof pg.DatabaseError;
    return isBehind ? new SkippedStatementError(error) : error;
  }

  override submit = (connection: pg.Connection): void => {
    const wire = connection as Wire;
    this.#columns = described.get(wire) ?? new Map();
    described.set(wire, this.#columns);
    const messages = this.#members.flatMap((member) => this.#messagesOf(wire, member));
    wire.stream.write(Buffer.concat([...messages, serialize.sync()]));
  };

  #messagesOf(wire: Wire, member: Member): Buffer[] {
    const { name = '', text, values } = member.statement;
    let bound: Buffer;
    try {
      bound = serialize.bind({ statement: name, values, valueMapper: utils.prepareValue });
    } catch (error) {
      member.failure = asError(error);
      return [REFUSED];
    }
    const isParsed = (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name]) !== undefined;
    if (!isParsed && name !== '') wire.submittedNamedStatements[name] = text;
    member.columns = this.#columns.get(name) ?? null;
    return [
      ...(isParsed ? [] : [serialize.parse({ name, text })]),
      bound,
      ...(member.columns === null ? [serialize.describe({ type: 'P' })] : []),
      serialize.execute(),
    ];
  }

  #turnTo(index: number): void {
    this.#current = index;
    this.name = this.#members[index]?.statement.name;
    this.text = this.#members[index]?.statement.text ?? '';
  }

  handleRowDescription({ fields }: { fields: Parameters<Result['addFields']>[0] }): void {
    const member = this.#members[this.#current];
    if (member === undefined) return;
    member.columns = newResult();
    member.columns.addFields(fields);
  }

  handleDataRow({ fields }: { fields: Parameters<Result['parseRow']>[0] }): void {
    const member = this.#members[this.#current];
    if (member === undefined || member.failure !== null) return;
    try {
      member.result.rows.push(member.columns?.parseRow(fields));
    } catch (error) {
      member.failure = asError(error);
    }
  }

  handleCommandComplete(message: { text: string }): void {
    const member = this.#members[this.#current];
    if (member !== undefined) {
      member.result.addCommandComplete(message);
      if (this.name !== undefined) this.#columns.set(this.name, member.columns ?? newResult());
    }
    this.#turnTo(this.#current + 1);
  }

  handleError(error: Error, wire: Wire): void {
    // The server parsed none of those behind it.
    for (const { statement } of this.#members.slice(this.#current + 1))
      if (statement.name !== undefined) delete wire.submittedNamedStatements[statement.name];
    this.callback(this.#members[this.#current]?.failure ?? error);
  }

  handleReadyForQuery(): void {
    this.callback(null);
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
