import type { Duplex } from 'node:stream';
import pg from 'pg';
import { serialize } from 'pg-protocol';
import type { Binding, Statement, StatementResult } from './sql.ts';

/** The statements of one connection, in the order in which they are given. */
export type Statements = {
  /**
   * Those of one tick are a group: they leave in one write, the server answers them in one, and after the first that
   * fails it skips the rest, which then fail with the same error. Side by side without a group, each of them costs both
   * ends a write, a read and a wake-up of its own.
   */
  run(statement: Statement): Promise<StatementResult>;
  /** A text as it is, also several statements in one. */
  runText(text: string): Promise<StatementResult>;
};

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
        waiting.push({ statement, columns: null, result: emptyResult(), resolve, reject });
      }),
    runText: (text) => {
      leave();
      return client.query(text);
    },
  };
}

type Column = { name: string; parse: (text: string) => unknown };

type Member = {
  statement: Statement;
  /** Null until the server has described them. */
  columns: readonly Column[] | null;
  result: StatementResult;
  resolve: (result: StatementResult) => void;
  reject: (error: Error) => void;
};

function emptyResult(): StatementResult {
  return { rows: [], rowCount: null, command: '' };
}

/** What of the driver's connection is used here. */
type Wire = pg.Connection & {
  stream: Duplex;
  /** By name. The driver moves them here from `submittedNamedStatements` when the server has parsed them. */
  parsedStatements: Record<string, string | undefined>;
  submittedNamedStatements: Record<string, string | undefined>;
};

const { prepareValue } = (pg as unknown as { utils: { prepareValue: (value: Binding) => unknown } }).utils;

/** What the named statements of a connection return: the server is asked once. */
const described = new WeakMap<Wire, Map<string, readonly Column[]>>();

const COMMAND = /^(\w+)(?: \d+)*?(?: (\d+))?$/;

/**
 * For the driver it is one query. `name` and `text` are those of the statement that is being answered: by them the
 * driver notes what has been parsed.
 */
class StatementGroup extends pg.Query {
  declare name: string | undefined;
  declare text: string;
  readonly #members: readonly Member[];
  #columns = new Map<string, readonly Column[]>();
  #answered = 0;

  constructor(members: readonly Member[]) {
    super({ text: '' });
    this.#members = members;
    this.#turnTo(0);
  }

  callback = (error: Error | null): void => {
    for (const [index, { result, resolve, reject }] of this.#members.entries()) {
      if (error === null || index < this.#answered) resolve(result);
      else reject(error);
    }
  };

  override submit = (connection: pg.Connection): void => {
    const wire = connection as Wire;
    this.#columns = described.get(wire) ?? new Map();
    described.set(wire, this.#columns);
    const messages = this.#members.flatMap((member) => this.#messagesOf(wire, member));
    wire.stream.write(Buffer.concat([...messages, serialize.sync()]));
  };

  #messagesOf(wire: Wire, member: Member): Buffer[] {
    const { name = '', text, values } = member.statement;
    const isParsed = (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name]) !== undefined;
    if (!isParsed && name !== '') wire.submittedNamedStatements[name] = text;
    member.columns = this.#columns.get(name) ?? null;
    return [
      ...(isParsed ? [] : [serialize.parse({ name, text })]),
      serialize.bind({ statement: name, values, valueMapper: prepareValue }),
      ...(member.columns === null ? [serialize.describe({ type: 'P' })] : []),
      serialize.execute(),
    ];
  }

  #turnTo(index: number): void {
    this.#answered = index;
    this.name = this.#members[index]?.statement.name;
    this.text = this.#members[index]?.statement.text ?? '';
  }

  handleRowDescription({ fields }: { fields: readonly { name: string; dataTypeID: number }[] }): void {
    const member = this.#members[this.#answered];
    if (member !== undefined)
      member.columns = fields.map(({ name, dataTypeID }) => ({
        name,
        parse: pg.types.getTypeParser(dataTypeID),
      }));
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    const member = this.#members[this.#answered];
    const row: Record<string, unknown> = {};
    member?.columns?.forEach(({ name, parse }, index) => {
      const text = fields[index] ?? null;
      row[name] = text === null ? null : parse(text);
    });
    member?.result.rows.push(row);
  }

  handleCommandComplete({ text }: { text: string }): void {
    const member = this.#members[this.#answered];
    if (member !== undefined) {
      const [, command = '', rowCount] = COMMAND.exec(text) ?? [];
      member.result.command = command;
      member.result.rowCount = rowCount === undefined ? null : Number(rowCount);
      if (this.name !== undefined) this.#columns.set(this.name, member.columns ?? []);
    }
    this.#turnTo(this.#answered + 1);
  }

  handleError(error: Error, wire: Wire): void {
    // The server parsed none of those behind it.
    for (const { statement } of this.#members.slice(this.#answered + 1))
      if (statement.name !== undefined) delete wire.submittedNamedStatements[statement.name];
    this.callback(error);
  }

  handleReadyForQuery(): void {
    this.callback(null);
  }
}
