import type { Duplex } from 'node:stream';
import pg from 'pg';
import type { Logger } from '../logger.ts';
import { parseDatabaseUrl, tlsOptionsOf } from './database-url.ts';
import { DatabaseClient, openPool, type TargetConfig } from './primary.ts';

export type DatabaseOptions = {
  url: string;
  /**
   * The server itself, where `url` leads to a pooler that gives a connection for one transaction: for what needs a
   * separate connection. Nothing of a session counts behind a pooler, so each transaction brings its settings.
   */
  directUrl?: string;
  /** The pooler keeps prepared statements. Otherwise no statement has a name, and is parsed and planned each time. */
  poolerPrepares?: boolean;
  poolMax: number;
  /** So many stay open while unused: opening one takes as long as a whole delivery. */
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
   * indexes: a separate plan per execution costs more than most of them, and one that was made while a partition
   * was empty would read all of it later.
   */
  fixedPlans?: boolean;
};

/** The server cancels a statement at the first; what is not answered until the second has lost its server. */
export const TIMEOUTS = { statementMs: 30_000, answerMs: 35_000 };
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

const FIXED_PLANS = [
  'plan_cache_mode=force_generic_plan',
  'enable_seqscan=off',
  'enable_hashjoin=off',
  'enable_mergejoin=off',
  // Plans that fit any size look dear: a server with a compiler would compile them for milliseconds.
  'jit=off',
];

type ConnectionOptions = Omit<DatabaseOptions, 'poolMax' | 'poolMin'>;

function settingsOf({
  durable = true,
  fixedPlans = false,
  timeouts = TIMEOUTS,
}: ConnectionOptions): string[] {
  return [
    'timezone=UTC',
    `lock_timeout=${LOCK_TIMEOUT_MS}`,
    `statement_timeout=${timeouts.statementMs}`,
    `idle_in_transaction_session_timeout=${IDLE_IN_TRANSACTION_TIMEOUT_MS}`,
    `synchronous_commit=${durable ? 'on' : 'off'}`,
    ...(fixedPlans ? FIXED_PLANS : []),
  ];
}

/** The statement that a transaction behind a pooler begins with; null: the session has its settings. */
export function transactionSettings(options: ConnectionOptions): string | null {
  if (!isPooled(options)) return null;
  const calls = settingsOf(options).map((setting) => {
    const [name = '', value = ''] = setting.split('=');
    return `set_config(${pg.escapeLiteral(name)}, ${pg.escapeLiteral(value)}, true)`;
  });
  return `select ${calls.join(', ')}`;
}

export function isPooled({ directUrl }: Pick<DatabaseOptions, 'directUrl'>): boolean {
  return directUrl !== undefined && directUrl !== '';
}

/** Whether the next transaction may come to a connection that does not know the name of a statement. */
export function losesNames(options: Pick<DatabaseOptions, 'directUrl' | 'poolerPrepares'>): boolean {
  return isPooled(options) && options.poolerPrepares !== true;
}

/** The same database without the pooler, if there is one before it. */
export function direct<Options extends Pick<DatabaseOptions, 'url' | 'directUrl'>>(
  options: Options,
): Options {
  return isPooled(options) ? { ...options, url: options.directUrl, directUrl: '' } : options;
}

export function connectionOf(options: ConnectionOptions): TargetConfig {
  const target = parseDatabaseUrl(options.url);
  const [first] = target.hosts;
  const settings = [...settingsOf(options), ...SERVER_SOCKET];
  return {
    ...first,
    hosts: target.needsPrimary ? target.hosts : [],
    user: target.user,
    password: target.password,
    database: target.database,
    ssl: tlsOptionsOf(target),
    enableChannelBinding: target.channelBinding,
    application_name: options.applicationName,
    connectionTimeoutMillis: 8_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    // Poolers refuse sessions with settings.
    ...(!isPooled(options) && { options: settings.map((setting) => `-c ${setting}`).join(' ') }),
  };
}

/** Ends a connection without a word to the server, which may never take it. */
export async function cutConnection(client: pg.ClientBase): Promise<void> {
  const stream = streamOf(client);
  if (stream.closed) return;
  await new Promise<void>((resolve) => stream.once('close', () => resolve()).destroy());
}

function streamOf(client: pg.ClientBase): Duplex {
  return (client as unknown as { connection: { stream: Duplex } }).connection.stream;
}

/** What processes tell each other of; each is only a hint that something may be found sooner than by the next poll. */
export type Channel =
  | 'heliograph_inbox'
  | 'heliograph_deliveries'
  | 'heliograph_endpoints'
  | 'heliograph_workflow_tasks'
  | 'heliograph_sends';

export type Notifier = {
  /** Sent soon, together with what else is to be sent by then; the same thing once. Never fails. */
  notify(channel: Channel, payload: string): void;
  close(): Promise<void>;
};

/**
 * Notifies over its own connection. PostgreSQL lets one notifying transaction of a cluster commit at a time, and
 * holds that lock over the flush: so nothing that has to be durable notifies while it commits.
 */
export function openNotifier(connection: () => TargetConfig): Notifier {
  let pool: pg.Pool | null = null;
  let waiting = new Map<string, [Channel, string]>();
  let running: Promise<void> | null = null;

  const run = async () => {
    while (waiting.size > 0) {
      const told = [...waiting.values()];
      waiting = new Map();
      pool ??= openSinglePool(connection());
      const values = [told.map(([channel]) => channel), told.map(([, payload]) => payload)];
      // What is lost is found by polls.
      await pool.query({ text: NOTIFY, values }).catch(() => undefined);
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

function openSinglePool(config: TargetConfig): pg.Pool {
  const pool = openPool({
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

/** How often a connection that mostly listens is asked for a sign of life, and how long that may take. */
const HEARTBEAT = { everyMs: 10_000, answerMs: 5_000 };

const RECONNECT_MS = 1_000;

export type DatabaseListener = {
  open(): void;
  /** For how long no connection has listened, in milliseconds; 0: one does. */
  downMs(): number;
  close(): Promise<void>;
};

export type ListenerOptions = Pick<DatabaseOptions, 'url' | 'directUrl'> & {
  applicationName: string;
  /** Called per notification of the channel with its payload, and after a gap in the connection with an empty one. */
  handlers: Readonly<Partial<Record<Channel, (payload: string) => void>>>;
  logger: Pick<Logger, 'debug' | 'warn'>;
  /** Whether a connection that was lost is made again by itself; always, unless given. */
  isWanted?: () => boolean;
  /** A connection was silent since this moment (`performance.now()`) and a new one works: others as old are likely dead. */
  onSilence?: (sinceMs: number) => void;
  heartbeat?: { everyMs: number; answerMs: number };
};

/** Listens over its own connection, which is made again when it is lost; polls cover what was missed meanwhile. */
export function listenToDatabase(options: ListenerOptions): DatabaseListener {
  const { handlers, logger, isWanted = () => true, onSilence, heartbeat = HEARTBEAT } = options;
  let client: pg.Client | null = null;
  let closing = false;
  let timer: NodeJS.Timeout | undefined;
  let silentSinceMs: number | null = null;
  let downSinceMs: number | null = performance.now();

  const lost = (which: pg.Client) => {
    if (client !== which) return;
    client = null;
    downSinceMs ??= performance.now();
    if (!closing) timer = setTimeout(() => isWanted() && open(), RECONNECT_MS);
  };
  const connect = async (fresh: pg.Client) => {
    fresh.on('error', (error) => logger.debug({ err: error }, 'database listener lost its connection'));
    fresh.on('end', () => lost(fresh));
    fresh.on('notification', ({ channel, payload }) => handlers[channel as Channel]?.(payload ?? ''));
    try {
      await listenOn(fresh, Object.keys(handlers));
    } catch {
      void cutConnection(fresh);
      lost(fresh);
      return;
    }
    downSinceMs = null;
    if (silentSinceMs !== null) onSilence?.(silentSinceMs);
    silentSinceMs = null;
    watchConnection(fresh, heartbeat.everyMs, (askedAtMs) => {
      silentSinceMs ??= askedAtMs;
      logger.warn('the listener gets no response from the database: reconnecting');
      void cutConnection(fresh);
    });
    for (const handle of Object.values(handlers)) handle('');
  };
  const open = () => {
    if (client !== null || closing) return;
    clearTimeout(timer);
    client = new DatabaseClient({
      ...connectionOf(direct(options)),
      connectionTimeoutMillis: heartbeat.answerMs,
      query_timeout: heartbeat.answerMs,
    });
    void connect(client);
  };
  return {
    open,
    downMs: () => (downSinceMs === null ? 0 : performance.now() - downSinceMs),
    close: async () => {
      closing = true;
      clearTimeout(timer);
      await client?.end().catch(() => undefined);
    },
  };
}

async function listenOn(client: pg.Client, channels: readonly string[]): Promise<void> {
  await client.connect();
  for (const channel of channels) await client.query(`listen ${pg.escapeIdentifier(channel)}`);
}

/**
 * Asks a listening connection for a sign of life until it ends: a firewall that forgot it, or a server whose host is
 * gone, would never tell. `onSilent` gets the moment (`performance.now()`) of the question without an answer.
 */
function watchConnection(client: pg.Client, everyMs: number, onSilent: (askedAtMs: number) => void): void {
  const ask = async () => {
    const askedAtMs = performance.now();
    try {
      await client.query('select 1');
      timer.refresh();
    } catch {
      onSilent(askedAtMs);
    }
  };
  const timer = setTimeout(() => void ask(), everyMs).unref();
  client.once('end', () => clearTimeout(timer));
}

export type PoolUse = {
  open: number;
  idle: number;
  waiting: number;
  /** How often one was asked for while none was idle, and for how long that was waited for in all. */
  waits: number;
  waitedMs: number;
};

export type Waits = { count: number; ms: number };

export async function waitForClient(pool: pg.Pool, waits: Waits): Promise<pg.PoolClient> {
  const startMs = performance.now();
  try {
    return await pool.connect();
  } finally {
    waits.count += 1;
    waits.ms += performance.now() - startMs;
  }
}
