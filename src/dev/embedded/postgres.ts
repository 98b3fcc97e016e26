import { mkdirSync } from 'node:fs';
import pg from 'pg';
import { minimalEnvironment } from './minimal-environment.ts';
import { choosePostgresAccount } from './postgres-account.ts';
import { clusterDirectory, DATABASE_USER, ensureCluster } from './postgres-cluster.ts';
import { removePostgresLeftovers } from './postgres-leftovers.ts';
import { findPostgresPrograms } from './postgres-programs.ts';
import type { Supervisor } from './supervisor.ts';

interface PostgresOptions {
  readonly dataDir: string;
  readonly logFile: string;
  readonly port: number;
  /** False trades safety on power loss for speed. */
  readonly durable: boolean;
}

const DATABASE = 'heliograph';

/** For a small machine that runs everything. TCP only: a socket's path may be too long for the system. */
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=200',
  'shared_buffers=128MB',
  'log_timezone=UTC',
  'timezone=UTC',
];

/** Not synchronous_commit or full_page_writes, without which a mere kill of the server would lose commits. */
const NOT_DURABLE = ['fsync=off'];

/** Starts PostgreSQL with the database `heliograph`; returns its connection string, which holds the password. */
export async function startPostgres(supervisor: Supervisor, options: PostgresOptions): Promise<string> {
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const programs = await findPostgresPrograms();
  const account = await choosePostgresAccount(programs.postgres, options.dataDir);
  const dataDirectory = clusterDirectory(options.dataDir);
  await removePostgresLeftovers(dataDirectory);
  const { password } = await ensureCluster(options.dataDir, programs, account);
  const url = (database: string) =>
    `postgres://${DATABASE_USER}:${password}@127.0.0.1:${options.port}/${database}`;
  const settings = [...SETTINGS, `port=${options.port}`, ...(options.durable ? [] : NOT_DURABLE)];
  await supervisor.start({
    name: 'postgres',
    launcher: account.launcher,
    command: programs.postgres,
    args: ['-D', dataDirectory, ...settings.flatMap((setting) => ['-c', setting])],
    env: minimalEnvironment(),
    logFile: options.logFile,
    // Fast shutdown: open transactions are rolled back, connections closed.
    stopSignal: 'SIGINT',
    stopGraceMs: 20_000,
    readyTimeoutMs: 120_000,
    isReady: () => answersQuery(url('postgres')),
    removeLeftovers: () => removePostgresLeftovers(dataDirectory),
  });
  await ensureDatabase(url);
  return url(DATABASE);
}

async function answersQuery(connectionString: string): Promise<boolean> {
  return withClient(connectionString, async (client) => {
    await client.query('select 1');
    return true;
  });
}

async function ensureDatabase(url: (database: string) => string): Promise<void> {
  await withClient(url('postgres'), async (client) => {
    const found = await client.query('select 1 from pg_database where datname = $1', [DATABASE]);
    if (found.rowCount === 0) await client.query(`create database ${DATABASE}`);
  });
}

async function withClient<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 2_000, query_timeout: 30_000 });
  // A server that ends just then must not end this process by an unheard event.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}
