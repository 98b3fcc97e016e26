import {
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { keptSecret } from './kept-files.ts';
import { choosePostgresAccount, type PostgresAccount } from './postgres-account.ts';
import { findPostgresPrograms, type PostgresPrograms } from './postgres-programs.ts';
import { commandLineOf, identifyProcess } from './process-identity.ts';
import { minimalEnvironment, runCommand } from './run-command.ts';
import type { Supervisor } from './supervisor.ts';

interface PostgresOptions {
  readonly dataDir: string;
  readonly logFile: string;
  readonly port: number;
  /** False trades safety on power loss for speed. */
  readonly durable: boolean;
  /** Of the server, `name=value`, beside those that every one gets. */
  readonly settings?: readonly string[];
  /** Those of another version than the one that is installed. */
  readonly programs?: PostgresPrograms;
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
  const programs = options.programs ?? (await findPostgresPrograms());
  const account = await choosePostgresAccount(programs.postgres, options.dataDir);
  const dataDirectory = clusterDirectory(options.dataDir);
  await removePostgresLeftovers(dataDirectory);
  const { password } = await ensureCluster(options.dataDir, programs, account);
  const url = (database: string) =>
    `postgres://${DATABASE_USER}:${password}@127.0.0.1:${options.port}/${database}`;
  const settings = [
    ...SETTINGS,
    `port=${options.port}`,
    ...(options.durable ? [] : NOT_DURABLE),
    ...(options.settings ?? []),
  ];
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
    isServer: true,
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

const DATABASE_USER = 'heliograph';

interface PostgresCluster {
  readonly dataDirectory: string;
  readonly password: string;
}

/** The directories of the cluster below `directory`; nothing is made yet. */
function clusterDirectory(directory: string): string {
  return join(directory, 'data');
}

/**
 * The database cluster in `directory`, made there at the first call (UTF-8, C locale, password in a file
 * beside it). An interrupted creation leaves nothing that would pass for a cluster.
 */
async function ensureCluster(
  directory: string,
  programs: PostgresPrograms,
  account: PostgresAccount,
): Promise<PostgresCluster> {
  const dataDirectory = clusterDirectory(directory);
  const passwordFile = join(directory, 'password');
  const password = keptSecret(passwordFile, 24);
  if (!existsSync(join(dataDirectory, 'PG_VERSION'))) {
    const unfinished = join(directory, 'data.unfinished');
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(unfinished, { mode: 0o700 });
    giveTo(unfinished, account);
    giveTo(passwordFile, account);
    await initialise(unfinished, passwordFile, programs, account);
    renameSync(unfinished, dataDirectory);
  }
  giveTo(dataDirectory, account);
  return { dataDirectory, password };
}

async function initialise(
  target: string,
  passwordFile: string,
  programs: PostgresPrograms,
  account: PostgresAccount,
): Promise<void> {
  const command = [
    ...[...account.launcher, programs.initdb, '--pgdata', target, '--username', DATABASE_USER],
    ...['--pwfile', passwordFile, '--auth', 'scram-sha-256', '--encoding', 'UTF8', '--locale', 'C'],
    // The server's own start-up makes the files safe; a cluster lost before that holds nothing.
    ...['--no-instructions', '--no-sync'],
  ];
  const { code, output } = await runCommand(command, { env: minimalEnvironment(), timeoutMs: 120_000 });
  if (code !== 0) throw new Error(`initdb failed (exit code ${code}):\n${output.trim()}`);
}

/** Only root can, and needs to: the way PostgreSQL is run may differ from the last time. */
function giveTo(path: string, account: PostgresAccount): void {
  const { uid, gid } = account.ownerId;
  const stat = lstatSync(path);
  if (process.getuid?.() !== 0 || stat.uid === uid) return;
  if (stat.isDirectory()) {
    for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' })) {
      lchownSync(join(path, name), uid, gid);
    }
  }
  // The top comes last, so that an interrupted change is done again.
  lchownSync(path, uid, gid);
}

const ORPHAN_GRACE_MS = 3_000;
const SHUTDOWN_GRACE_MS = 10_000;

/**
 * Makes a data directory free for a new postmaster: what a killed one left running is ended and waited for,
 * since two servers on the same files would destroy them.
 */
async function removePostgresLeftovers(dataDirectory: string): Promise<void> {
  const main = recordedPostmaster(dataDirectory);
  if (main !== undefined && isServerOf(main, dataDirectory)) {
    send(main, 'SIGINT');
    await until(() => !isServerOf(main, dataDirectory), SHUTDOWN_GRACE_MS);
  }
  // Backends notice the end of their postmaster by themselves, unless they are busy.
  await until(() => serversOf(dataDirectory).length === 0, ORPHAN_GRACE_MS);
  for (const pid of serversOf(dataDirectory)) send(pid, 'SIGKILL');
  await until(() => serversOf(dataDirectory).length === 0, ORPHAN_GRACE_MS);
  removeMisleadingPidFile(dataDirectory);
}

/**
 * PostgreSQL clears the file of a dead postmaster itself, and looks at the shared memory named in it.
 * Only when the number has gone to some other program, which PostgreSQL would take for a server, is it removed.
 */
function removeMisleadingPidFile(dataDirectory: string): void {
  const pid = recordedPostmaster(dataDirectory);
  if (pid === undefined || identifyProcess(pid) === undefined || isServerOf(pid, dataDirectory)) return;
  rmSync(join(dataDirectory, 'postmaster.pid'), { force: true });
}

function recordedPostmaster(dataDirectory: string): number | undefined {
  try {
    const [first = ''] = readFileSync(join(dataDirectory, 'postmaster.pid'), 'utf8').split('\n');
    const pid = Number(first);
    return Number.isInteger(pid) && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Every PostgreSQL process works in its data directory; without /proc only the recorded one is known. */
function serversOf(dataDirectory: string): number[] {
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => isServerOf(pid, dataDirectory));
  }
  const pid = recordedPostmaster(dataDirectory);
  return pid !== undefined && isServerOf(pid, dataDirectory) ? [pid] : [];
}

function isServerOf(pid: number, dataDirectory: string): boolean {
  if (identifyProcess(pid) === undefined) return false;
  if (process.platform !== 'linux') return commandLineOf(pid).includes(dataDirectory);
  try {
    if (readlinkSync(`/proc/${pid}/cwd`) !== realpathSync(dataDirectory)) return false;
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'postgres';
  } catch {
    return false;
  }
}

async function until(condition: () => boolean, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!condition() && Date.now() < deadline) await delay(20);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended in the meantime.
  }
}
