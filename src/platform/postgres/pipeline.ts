import type { Duplex } from 'node:stream';
import pg from 'pg';
import { serialize } from 'pg-protocol';
import type { Binding, Statement, StatementResult } from './sql.ts';

export type Statements = {
  /**
   * Those of one tick are a group: they leave in one write, the server responds to them in one, and after the first that
   * fails it skips the rest, which then fail with a SkippedStatementError. Side by side without a group, each of them costs both
   * ends a write, a read and its own wake-up.
   */
  run(statement: Statement): Promise<StatementResult>;
  runText(text: string): Promise<StatementResult>;
};

/** A statement that did not run because the one before it in its group failed, which is its cause. */
export class SkippedStatementError extends Error {
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
    // Behind the last of them the server commits what has no transaction: that failed.
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
