import type { Duplex } from 'node:stream';
import pg from 'pg';
import { type Bindings, prepared, unprepared } from './statement.ts';

/** What a repository runs on: the pool, or one transaction. */
export type Database = {
  /** Runs one statement with `?` or `:name` bindings, prepared once per connection; several at once without any. */
  raw(text: string, bindings?: Bindings): Promise<pg.QueryResult>;
  /**
   * Runs `work` in a transaction (inside another one: a savepoint), undone when it throws. Statements that do not
   * depend on each other may be given side by side: they then share a round trip.
   */
  transaction<T>(work: (trx: Transaction) => Promise<T | LastStatements<T>>): Promise<T>;
};
export type Transaction = Database & { readonly isTransaction: true };

/**
 * What a transaction's work returns to save a round trip: statements that have all been sent, behind which the commit
 * goes without waiting for their answers. When one of them fails, the commit undoes everything.
 */
export class LastStatements<T> {
  readonly answers: Promise<T>;
  constructor(answers: Promise<T>) {
    this.answers = answers;
  }
}

/** All connections of a process to one database. */
export type DatabasePool = Database & { readonly options: DatabaseOptions; destroy(): Promise<void> };

/** Dates without a time stay text: a JavaScript Date would shift them by the time zone. */
pg.types.setTypeParser(pg.types.builtins.DATE, (text) => text);

const STATEMENT_TIMEOUT_MS = 30_000;
const LOCK_TIMEOUT_MS = 10_000;

/** Longer than the server's own limit: what hangs longer has lost its server. */
const QUERY_TIMEOUT_MS = 35_000;

/** A frozen process must not hold locks for ever: the server ends its transaction after this time. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;

export type DatabaseOptions = {
  url: string;
  /** Most connections at a time. */
  poolMax: number;
  /** Shows in pg_stat_activity. */
  applicationName: string;
  /** False: a commit may be lost when the server crashes, for statements whose loss only repeats work. */
  durable?: boolean;
  /**
   * True: every statement keeps one plan, made of index look-ups. For a process whose statements are all answered by
   * indexes: a plan of its own per execution costs more than most of them, and one that was made while a partition
   * was empty would read all of it later.
   */
  fixedPlans?: boolean;
};

const FIXED_PLANS = [
  'plan_cache_mode=force_generic_plan',
  'enable_seqscan=off',
  'enable_hashjoin=off',
  'enable_mergejoin=off',
];

/** Opens a pool; it connects when it is first used. */
export function openDatabase(options: DatabaseOptions): DatabasePool {
  const pool = new pg.Pool({
    ...connectionOf(options),
    query_timeout: QUERY_TIMEOUT_MS,
    pipeline: true,
    max: options.poolMax,
    idleTimeoutMillis: 60_000,
  });
  // A connection that is lost while nobody uses it is replaced; whoever uses one gets the error himself.
  pool.on('error', () => {});
  return {
    options,
    raw: (text, bindings) => pool.query(bindings === undefined ? unprepared(text) : prepared(text, bindings)),
    transaction: (work) => inTransaction(pool, work),
    destroy: () => pool.end(),
  };
}

/** How to connect; also for a connection that is opened apart from the pool. */
export function connectionOf({
  url,
  applicationName,
  durable = true,
  fixedPlans = false,
}: DatabaseOptions): pg.ClientConfig {
  const settings = ['timezone=UTC', `lock_timeout=${LOCK_TIMEOUT_MS}`];
  if (!durable) settings.push('synchronous_commit=off');
  if (fixedPlans) settings.push(...FIXED_PLANS);
  return {
    connectionString: url,
    application_name: applicationName,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    connectionTimeoutMillis: 8_000,
    keepAlive: true,
    options: settings.map((setting) => `-c ${setting}`).join(' '),
  };
}

async function inTransaction<T>(pool: pg.Pool, work: Work<T>): Promise<T> {
  const client = await pool.connect();
  // The server's word that it ended the connection can come while no statement runs; the next one then fails.
  const onLost = () => {};
  client.on('error', onLost);
  let broken = true;
  try {
    const result = await bracket(client, ['begin', 'commit', 'rollback'], work);
    broken = false;
    return result;
  } catch (error) {
    broken = error instanceof BrokenConnectionError;
    throw error instanceof BrokenConnectionError ? error.cause : error;
  } finally {
    client.off('error', onLost);
    client.release(broken);
  }
}

type Work<T> = (trx: Transaction) => Promise<T | LastStatements<T>>;

/** Undoing failed too, so nobody knows what the connection's state is. */
class BrokenConnectionError extends Error {}

async function bracket<T>(
  client: pg.PoolClient,
  [begin, commit, rollback]: readonly [string, string, string],
  work: Work<T>,
): Promise<T> {
  const trx = transactionOn(client);
  try {
    // Sent together with the first statement; when it fails, so does everything after it.
    const [, result] = await Promise.all([send(client, { text: begin }), work(trx.transaction)]);
    if (!(result instanceof LastStatements)) {
      await client.query(commit);
      return result;
    }
    trx.end();
    const [answers] = await Promise.all([result.answers, client.query(commit)]);
    return answers;
  } catch (error) {
    try {
      await client.query(rollback);
    } catch {
      throw new BrokenConnectionError('the transaction could not be undone', { cause: error });
    }
    throw error;
  }
}

/** Statements that are given in the same tick leave in one write. */
function send(client: pg.PoolClient, statement: pg.QueryConfig): Promise<pg.QueryResult> {
  const { stream } = (client as unknown as { connection: { stream: Duplex } }).connection;
  stream.cork();
  process.nextTick(() => stream.uncork());
  return client.query(statement);
}

function transactionOn(client: pg.PoolClient): { transaction: Transaction; end(): void } {
  let savepoints = 0;
  let ended = false;
  const transaction: Transaction = {
    isTransaction: true,
    raw: async (text, bindings) => {
      if (ended) throw new Error('a statement was given after the last ones of its transaction');
      return await send(client, bindings === undefined ? unprepared(text) : prepared(text, bindings));
    },
    transaction: async (work) => {
      savepoints += 1;
      const name = `s${savepoints}`;
      return await bracket(
        client,
        [`savepoint ${name}`, `release savepoint ${name}`, `rollback to savepoint ${name}`],
        work,
      );
    },
  };
  return {
    transaction,
    end: () => {
      ended = true;
    },
  };
}
