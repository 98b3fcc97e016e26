import pg from 'pg';
import {
  type Channel,
  connectionOf,
  cutConnection,
  type DatabaseOptions,
  isPooled,
  losesNames,
  type Notifier,
  openNotifier,
  type PoolUse,
  TIMEOUTS,
  transactionSettings,
  type Waits,
  waitForClient,
} from './connection.ts';
import { SkippedStatementError, type Statements, statementsOn } from './pipeline.ts';
import { openPool } from './primary.ts';
import { type Bindings, prepared, type StatementResult } from './sql.ts';

/** What a repository runs on: the pool, or one transaction. */
export type Database = {
  /** Runs one statement with `?` or `:name` bindings, prepared once per connection; several at once without any. */
  raw(text: string, bindings?: Bindings): Promise<StatementResult>;
  /**
   * Runs `work` in a transaction (inside another one: a savepoint), undone when it throws. Statements that do not
   * depend on each other may be given side by side: they then share a round trip.
   */
  transaction<T>(work: (trx: Transaction) => Promise<T | LastStatements<T>>): Promise<T>;
  /** Notifies the listeners, in a transaction once it is committed; a hint that can be lost. */
  notify(channel: Channel, payload?: string): void;
};
export type Transaction = Database & { readonly isTransaction: true };

/**
 * What a transaction's work returns to save a round trip: statements that have all been sent, behind which the commit
 * goes without waiting for their results. When one of them fails, the commit undoes everything.
 */
export class LastStatements<T> {
  readonly answers: Promise<T>;
  constructor(answers: Promise<T>) {
    this.answers = answers;
  }
}

export type DatabasePool = Database & {
  readonly options: DatabaseOptions;
  use(): PoolUse;
  /**
   * Cuts the connections that were made before this moment (`performance.now()`): for when the way to the server is
   * known to be dead. Statements under way on them fail as they do with any lost connection.
   */
  cutConnections(beforeMs: number): Promise<void>;
  destroy(): Promise<void>;
};

/** Dates without a time stay text: a JavaScript Date would shift them by the time zone. */
pg.types.setTypeParser(pg.types.builtins.DATE, (text) => text);

/** Opens a pool; it connects when it is first used. */
export function openDatabase(options: DatabaseOptions): DatabasePool {
  const pool = openPool({
    ...connectionOf(options),
    query_timeout: (options.timeouts ?? TIMEOUTS).answerMs,
    pipeline: true,
    max: options.poolMax,
    min: Math.min(options.poolMin ?? 0, options.poolMax),
    idleTimeoutMillis: 60_000,
  });
  // A connection that is lost while unused is replaced; while used, its user gets the error.
  pool.on('error', () => {});
  const cutConnections = cutterOf(pool);
  /** A server that does not even cancel is out of reach: the other connections to it would hang as long. */
  const watched = async <T>(work: Promise<T>): Promise<T> => {
    const startMs = performance.now();
    try {
      return await work;
    } catch (error) {
      if (isUnanswered(error)) await cutConnections(startMs);
      throw error;
    }
  };
  const notifier = openNotifier(() => connectionOf({ ...options, durable: false }));
  const waits = { count: 0, ms: 0 };
  const parts = {
    pool,
    waits,
    notifier,
    settings: transactionSettings(options),
    hasNames: !losesNames(options),
  };
  const alone = (text: string, bindings: Bindings | undefined) =>
    withClient(parts, (client) => runOn(statementsOn(client), text, bindings));
  const inOne = (text: string, bindings: Bindings | undefined) =>
    inTransaction(parts, async (trx) => new LastStatements(trx.raw(text, bindings)));
  const raw = isPooled(options) ? inOne : alone;
  return {
    options,
    use: () => ({
      open: pool.totalCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
      waits: waits.count,
      waitedMs: waits.ms,
    }),
    raw: (text, bindings) => watched(raw(text, bindings)),
    transaction: (work) => watched(inTransaction(parts, work)),
    notify: (channel, payload = '') => notifier.notify(channel, payload),
    cutConnections,
    destroy: async () => {
      await notifier.close();
      await pool.end();
    },
  };
}

function cutterOf(pool: pg.Pool): (beforeMs: number) => Promise<void> {
  const madeAtMs = new Map<pg.PoolClient, number>();
  pool.on('connect', (client) => madeAtMs.set(client, performance.now()));
  pool.on('remove', (client) => madeAtMs.delete(client));
  return async (beforeMs) => {
    const old = [...madeAtMs].filter(([, atMs]) => atMs < beforeMs).map(([client]) => client);
    await Promise.all(old.map(cutConnection));
  };
}

function isUnanswered(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout';
}

async function inTransaction<T>(parts: Parts, work: Work<T>): Promise<T> {
  const { notifier, settings, hasNames } = parts;
  const notifications: [Channel, string][] = [];
  try {
    const result = await withClient(parts, (client) => {
      const statements = hasNames ? statementsOn(client) : withoutNames(statementsOn(client));
      const open = { statements, notifications, settings };
      return bracket(open, ['begin', 'commit', 'rollback'], work);
    });
    for (const [channel, payload] of notifications) notifier.notify(channel, payload);
    return result;
  } catch (error) {
    throw error instanceof BrokenConnectionError ? error.cause : error;
  }
}

async function withClient<T>(
  parts: Pick<Parts, 'pool' | 'waits'>,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client =
    parts.pool.idleCount > 0 ? await parts.pool.connect() : await waitForClient(parts.pool, parts.waits);
  let broken = false;
  try {
    return await work(client);
  } catch (error) {
    broken = isConnectionUnusable(error);
    throw error;
  } finally {
    client.release(broken);
  }
}

/** Without bindings it may be several statements. */
async function runOn(
  statements: Statements,
  text: string,
  bindings: Bindings | undefined,
): Promise<StatementResult> {
  try {
    return await (bindings === undefined
      ? statements.runText(text)
      : statements.run(prepared(text, bindings)));
  } catch (error) {
    // Leads from the driver's socket back to the statement.
    if (error instanceof Error) Error.captureStackTrace(error);
    throw error;
  }
}

type Parts = {
  pool: pg.Pool;
  waits: Waits;
  notifier: Notifier;
  settings: string | null;
  hasNames: boolean;
};

/** Notifications that follow when the transaction is committed. */
type Open = { statements: Statements; notifications: [Channel, string][]; settings: string | null };

function withoutNames(statements: Statements): Statements {
  return { ...statements, run: ({ text, values }) => statements.run({ text, values }) };
}

/** Any other failure leaves the connection as it was; the driver itself notices that a socket has closed. */
function isConnectionUnusable(error: unknown): boolean {
  return error instanceof BrokenConnectionError || isUnanswered(error) || isReadOnly(error) || isFatal(error);
}

/** A server that has become a standby: the next connection goes to the one that takes writes now. */
function isReadOnly(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006';
}

/** The server closes the connection behind it. */
function isFatal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.severity !== 'ERROR';
}

type Work<T> = (trx: Transaction) => Promise<T | LastStatements<T>>;

/** Undoing failed too, so the connection's state is unknown. */
class BrokenConnectionError extends Error {}

async function bracket<T>(
  open: Open,
  [begin, commit, rollback]: readonly [string, string, string],
  work: Work<T>,
): Promise<T> {
  const send = (text: string) => open.statements.run(prepared(text));
  const trx = transactionOn(open);
  try {
    // Sent together with the first statement, or with all of them; when it fails, so does everything after it.
    const begun = Promise.all([send(begin), ...(open.settings === null ? [] : [send(open.settings)])]);
    begun.catch(() => undefined);
    const result = await work(trx.transaction);
    if (!(result instanceof LastStatements)) {
      await begun;
      requireCommitted(await send(commit));
      return result;
    }
    trx.end();
    const [answers, committed] = await Promise.all([result.answers, send(commit), begun]);
    requireCommitted(committed);
    return answers;
  } catch (rejection) {
    // Branches of the work may still go on: their next statements must not reach the connection behind the rollback.
    trx.end();
    const error = rejection instanceof SkippedStatementError ? rejection.cause : rejection;
    if (isUnanswered(error)) throw new BrokenConnectionError('the server does not answer', { cause: error });
    try {
      // Apart from the statements of such branches: the server would skip it behind one that fails.
      await open.statements.runText(rollback);
    } catch {
      throw new BrokenConnectionError('the transaction could not be undone', { cause: error });
    }
    throw error;
  }
}

/** The commit of a transaction that has failed is answered like any other, but with another word. */
function requireCommitted({ command }: StatementResult): void {
  if (command === 'ROLLBACK') throw new RolledBackError();
}

class RolledBackError extends Error {
  readonly code = '40000';
  constructor() {
    super('the transaction was rolled back instead of committed');
    this.name = 'RolledBackError';
  }
}

function transactionOn(open: Open): { transaction: Transaction; end(): void } {
  let savepoints = 0;
  let ended = false;
  const requireOpen = () => {
    if (ended) throw new Error('a statement was given after the last ones of its transaction');
  };
  const transaction: Transaction = {
    isTransaction: true,
    raw: async (text, bindings) => {
      requireOpen();
      return await runOn(open.statements, text, bindings);
    },
    transaction: async (work) => {
      requireOpen();
      savepoints += 1;
      const name = `s${savepoints}`;
      return await bracket(
        { ...open, settings: null },
        [`savepoint ${name}`, `release savepoint ${name}`, `rollback to savepoint ${name}`],
        work,
      );
    },
    notify: (channel, payload = '') => void open.notifications.push([channel, payload]),
  };
  return {
    transaction,
    end: () => {
      ended = true;
    },
  };
}

class Undone extends Error {}

/** Runs `work` in a transaction that is rolled back whatever comes of it; rejects as `work` does. */
export async function undone(
  database: Database,
  work: (trx: Transaction) => Promise<unknown>,
): Promise<void> {
  try {
    await database.transaction(async (trx) => {
      await work(trx);
      throw new Undone();
    });
  } catch (error) {
    if (!(error instanceof Undone)) throw error;
  }
}
