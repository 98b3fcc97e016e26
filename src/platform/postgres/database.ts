import type { Duplex } from 'node:stream';
import pg from 'pg';
import { type Bindings, prepared } from './statement.ts';
import { type StatementResult, type Statements, statementsOn } from './statement-group.ts';

/** What a repository runs on: the pool, or one transaction. */
export type Database = {
  /** Runs one statement with `?` or `:name` bindings, prepared once per connection; several at once without any. */
  raw(text: string, bindings?: Bindings): Promise<StatementResult>;
  /**
   * Runs `work` in a transaction (inside another one: a savepoint), undone when it throws. Statements that do not
   * depend on each other may be given side by side: they then share a round trip.
   */
  transaction<T>(work: (trx: Transaction) => Promise<T | LastStatements<T>>): Promise<T>;
  /** Tells whoever listens, in a transaction once it is committed; a hint that can be lost. */
  notify(channel: Channel, payload?: string): void;
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
export type DatabasePool = Database & {
  readonly options: DatabaseOptions;
  /**
   * Cuts the connections that were made before this moment (`performance.now()`): for when the way to the server is
   * known to be dead. Statements under way on them fail as they do with any lost connection.
   */
  cutConnections(beforeMs: number): Promise<void>;
  destroy(): Promise<void>;
};

/** Dates without a time stay text: a JavaScript Date would shift them by the time zone. */
pg.types.setTypeParser(pg.types.builtins.DATE, (text) => text);

/** The server cancels a statement at the first; what is not answered until the second has lost its server. */
const TIMEOUTS = { statementMs: 30_000, answerMs: 35_000 };
const LOCK_TIMEOUT_MS = 10_000;

/** A frozen process must not hold locks for ever: the server ends its transaction after this time. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;

/** For the same when it froze, or vanished, while the server was sending to it: no time-out of a statement ends that. */
const SERVER_SOCKET = [
  'tcp_user_timeout=10000',
  'tcp_keepalives_idle=5',
  'tcp_keepalives_interval=2',
  'tcp_keepalives_count=3',
];

/** The other way round: an idle connection notices within seconds that its server is gone. */
const KEEP_ALIVE_DELAY_MS = 5_000;

export type DatabaseOptions = {
  url: string;
  /** Most connections at a time. */
  poolMax: number;
  /** So many stay open though nobody uses them: opening one takes as long as a whole delivery. */
  poolMin?: number;
  /** Shows in pg_stat_activity. */
  applicationName: string;
  /**
   * False: a commit may be lost when the server crashes, for statements whose loss only repeats work. Otherwise a
   * commit is on disk when it is answered, whatever the server's default is.
   */
  durable?: boolean;
  /** When the server cancels a statement, and when it is given up here. */
  timeouts?: { statementMs: number; answerMs: number };
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
  // Plans that fit any size look dear: a server with a compiler would compile them for milliseconds.
  'jit=off',
];

/** Opens a pool; it connects when it is first used. */
export function openDatabase(options: DatabaseOptions): DatabasePool {
  const pool = new pg.Pool({
    ...connectionOf(options),
    query_timeout: (options.timeouts ?? TIMEOUTS).answerMs,
    pipeline: true,
    max: options.poolMax,
    min: Math.min(options.poolMin ?? 0, options.poolMax),
    idleTimeoutMillis: 60_000,
  });
  // A connection that is lost while nobody uses it is replaced; whoever uses one gets the error himself.
  pool.on('error', () => {});
  const madeAtMs = new Map<pg.PoolClient, number>();
  pool.on('connect', (client) => madeAtMs.set(client, performance.now()));
  pool.on('remove', (client) => madeAtMs.delete(client));
  const cutConnections = async (beforeMs: number) => {
    const old = [...madeAtMs].filter(([, atMs]) => atMs < beforeMs).map(([client]) => client);
    await Promise.all(old.map(cutConnection));
  };
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
  return {
    options,
    raw: (text, bindings) =>
      watched(
        withClient(
          pool,
          () => true,
          (client) => runOn(statementsOn(client), text, bindings),
        ),
      ),
    transaction: (work) => watched(inTransaction({ pool, notifier }, work)),
    notify: (channel, payload = '') => notifier.notify(channel, payload),
    cutConnections,
    destroy: async () => {
      await notifier.close();
      await pool.end();
    },
  };
}

/** Ends a connection without a word to the server, which may never take it. */
export async function cutConnection(client: pg.ClientBase): Promise<void> {
  const stream = streamOf(client);
  if (stream.closed) return;
  await new Promise<void>((resolve) => stream.once('close', () => resolve()).destroy());
}

function isUnanswered(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout';
}

/** How to connect; also for a connection that is opened apart from the pool. */
export function connectionOf({
  url,
  applicationName,
  durable = true,
  fixedPlans = false,
  timeouts = TIMEOUTS,
}: Omit<DatabaseOptions, 'poolMax' | 'poolMin'>): pg.ClientConfig {
  const settings = ['timezone=UTC', `lock_timeout=${LOCK_TIMEOUT_MS}`, ...SERVER_SOCKET];
  settings.push(`synchronous_commit=${durable ? 'on' : 'off'}`);
  if (fixedPlans) settings.push(...FIXED_PLANS);
  return {
    connectionString: url,
    application_name: applicationName,
    statement_timeout: timeouts.statementMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    connectionTimeoutMillis: 8_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    options: settings.map((setting) => `-c ${setting}`).join(' '),
  };
}

async function inTransaction<T>({ pool, notifier }: Parts, work: Work<T>): Promise<T> {
  const told: [Channel, string][] = [];
  const isBroken = (error: unknown) => error instanceof BrokenConnectionError;
  try {
    const result = await withClient(pool, isBroken, (client) => {
      const open = { statements: statementsOn(client), told };
      return bracket(open, ['begin', 'commit', 'rollback'], work);
    });
    for (const [channel, payload] of told) notifier.notify(channel, payload);
    return result;
  } catch (error) {
    throw error instanceof BrokenConnectionError ? error.cause : error;
  }
}

/** A connection that `isBroken` after an error is not used again. */
async function withClient<T>(
  pool: pg.Pool,
  isBroken: (error: unknown) => boolean,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  // The server's word that it ended the connection can come while no statement runs; the next one then fails.
  const onLost = () => {};
  client.on('error', onLost);
  let broken = false;
  try {
    return await work(client);
  } catch (error) {
    broken = isBroken(error);
    throw error;
  } finally {
    client.off('error', onLost);
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

type Parts = { pool: pg.Pool; notifier: Notifier };

/** What is told when the transaction is committed. */
type Open = { statements: Statements; told: [Channel, string][] };

type Work<T> = (trx: Transaction) => Promise<T | LastStatements<T>>;

/** Undoing failed too, so nobody knows what the connection's state is. */
class BrokenConnectionError extends Error {}

async function bracket<T>(
  open: Open,
  [begin, commit, rollback]: readonly [string, string, string],
  work: Work<T>,
): Promise<T> {
  const send = (text: string) => open.statements.run(prepared(text, []));
  const trx = transactionOn(open);
  try {
    // Sent together with the first statement; when it fails, so does everything after it.
    const [, result] = await Promise.all([send(begin), work(trx.transaction)]);
    if (!(result instanceof LastStatements)) {
      requireCommitted(await send(commit));
      return result;
    }
    trx.end();
    const [answers, committed] = await Promise.all([result.answers, send(commit)]);
    requireCommitted(committed);
    return answers;
  } catch (error) {
    if (isUnanswered(error)) throw new BrokenConnectionError('the server does not answer', { cause: error });
    try {
      await send(rollback);
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

/** With the SQLSTATE of a transaction that was rolled back. */
class RolledBackError extends Error {
  readonly code = '40000';
  constructor() {
    super('the transaction was rolled back instead of committed');
    this.name = 'RolledBackError';
  }
}

function streamOf(client: pg.ClientBase): Duplex {
  return (client as unknown as { connection: { stream: Duplex } }).connection.stream;
}

function transactionOn(open: Open): { transaction: Transaction; end(): void } {
  let savepoints = 0;
  let ended = false;
  const transaction: Transaction = {
    isTransaction: true,
    raw: async (text, bindings) => {
      if (ended) throw new Error('a statement was given after the last ones of its transaction');
      return await runOn(open.statements, text, bindings);
    },
    transaction: async (work) => {
      savepoints += 1;
      const name = `s${savepoints}`;
      return await bracket(
        open,
        [`savepoint ${name}`, `release savepoint ${name}`, `rollback to savepoint ${name}`],
        work,
      );
    },
    notify: (channel, payload = '') => void open.told.push([channel, payload]),
  };
  return {
    transaction,
    end: () => {
      ended = true;
    },
  };
}

/** What processes tell each other of; each is only a hint that something may be found sooner than by the next poll. */
type Channel =
  | 'heliograph_inbox'
  | 'heliograph_deliveries'
  | 'heliograph_workflow_tasks'
  | 'heliograph_sends';

type Notifier = {
  /** Told soon, together with what else is to be told by then; the same thing once. Never fails. */
  notify(channel: Channel, payload: string): void;
  /** Once everything is told. */
  close(): Promise<void>;
};

/**
 * Notifies over a connection of its own. PostgreSQL lets one notifying transaction of a cluster commit at a time, and
 * holds that lock over the flush: so nothing that has to be durable notifies while it commits.
 */
function openNotifier(connection: () => pg.ClientConfig): Notifier {
  let pool: pg.Pool | null = null;
  let waiting = new Map<string, [Channel, string]>();
  let running: Promise<void> | null = null;

  const run = async () => {
    while (waiting.size > 0) {
      const told = [...waiting.values()];
      waiting = new Map();
      pool ??= openPool(connection());
      const values = [told.map(([channel]) => channel), told.map(([, payload]) => payload)];
      // What is lost is found by polls.
      await pool.query({ name: 'notify', text: NOTIFY, values }).catch(() => undefined);
    }
    running = null;
  };
  return {
    notify(channel, payload) {
      waiting.set(`${channel} ${payload}`, [channel, payload]);
      running ??= run();
    },
    async close() {
      await running;
      await pool?.end();
    },
  };
}

const NOTIFY =
  'select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as told (channel, payload)';

/** More would be of no use any more. */
const ANSWER_MS = 3_000;

function openPool(config: pg.ClientConfig): pg.Pool {
  const pool = new pg.Pool({
    ...config,
    max: 1,
    min: 1,
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
    idleTimeoutMillis: 60_000,
  });
  pool.on('error', () => {});
  return pool;
}
