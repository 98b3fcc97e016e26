import { appendFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { choosePostgresAccount, type PostgresAccount } from '../../dev/embedded/postgres-account.ts';
import type { PostgresPrograms } from '../../dev/embedded/postgres-programs.ts';
import type { PartDefinition } from '../../dev/embedded/process-part.ts';
import { minimalEnvironment, runCommand } from '../../dev/embedded/run-command.ts';
import type { Machine } from './machines.ts';

export const DATABASE_USER = 'heliograph';

/** As on machines of their own: nothing is durable until the standby has it too, a silent partner is noticed in seconds. */
const SETTINGS = [
  ...['listen_addresses=*', 'port=5432', 'unix_socket_directories=', 'max_connections=500'],
  ...['shared_buffers=256MB', 'log_timezone=UTC', 'timezone=UTC', 'log_min_duration_statement=5s'],
  ...['wal_sender_timeout=3s', 'wal_receiver_timeout=3s', 'wal_keep_size=1GB'],
  ...[
    'tcp_keepalives_idle=3',
    'tcp_keepalives_interval=1',
    'tcp_keepalives_count=3',
    'tcp_user_timeout=6000',
  ],
];

export type DatabaseServer = {
  machine: Machine;
  dataDirectory: string;
  definition: PartDefinition;
  /** Runs statements as the owner, each of them within `timeoutMs`. */
  query<Row extends object>(text: string, timeoutMs?: number): Promise<Row[]>;
};

/** What all servers of one installation have in common. */
export type DatabaseOptions = { programs: PostgresPrograms; password: string; cidr: string; logDir: string };

/** A server on a machine; its directory may still be empty. */
export async function databaseServer(
  machine: Machine,
  dataDirectory: string,
  { programs, password, logDir }: DatabaseOptions,
): Promise<DatabaseServer & { account: PostgresAccount }> {
  mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
  const account = await choosePostgresAccount(programs.postgres, dataDirectory);
  const query = <Row extends object>(text: string, timeoutMs = 10_000) =>
    queryAt<Row>(`postgres://${DATABASE_USER}:${password}@${machine.address}/postgres`, text, timeoutMs);
  const definition: PartDefinition = {
    name: machine.name,
    launcher: [...machine.launcher, ...account.launcher],
    command: programs.postgres,
    args: ['-D', dataDirectory, ...SETTINGS.flatMap((setting) => ['-c', setting])],
    env: minimalEnvironment(),
    logFile: join(logDir, `${machine.name}.log`),
    stopSignal: 'SIGINT',
    stopGraceMs: 20_000,
    isReady: async () => (await query('select 1', 2_000)).length === 1,
    removeLeftovers: async () => rmSync(join(dataDirectory, 'postmaster.pid'), { force: true }),
  };
  return { machine, dataDirectory, definition, query, account };
}

/** Makes an empty cluster there. */
export async function initialise(
  { dataDirectory, account }: { dataDirectory: string; account: PostgresAccount },
  { programs, password, cidr }: DatabaseOptions,
): Promise<void> {
  const passwordFile = join(dirname(dataDirectory), 'password');
  writeFileSync(passwordFile, password);
  const { code, output } = await runCommand(
    [
      ...[...account.launcher, programs.initdb, '--pgdata', dataDirectory, '--username', DATABASE_USER],
      ...['--pwfile', passwordFile, '--auth', 'scram-sha-256', '--encoding', 'UTF8', '--locale', 'C'],
      ...['--no-instructions', '--no-sync'],
    ],
    { env: minimalEnvironment(), timeoutMs: 120_000 },
  );
  if (code !== 0) throw new Error(`initdb failed (exit code ${code}):\n${output.trim()}`);
  const rules = ['all', 'replication'].map((what) => `host ${what} all ${cidr} scram-sha-256\n`);
  appendFileSync(join(dataDirectory, 'pg_hba.conf'), rules.join(''));
}

/** Makes `standby` a copy of the running `primary` that follows it; it is not started yet. */
export async function copyToStandby(
  primary: DatabaseServer,
  standby: DatabaseServer,
  { password }: DatabaseOptions,
): Promise<void> {
  const label = await withClient(clientUrl(primary.machine.address, password), 120_000, async (client) => {
    await client.query(`select pg_backup_start('standby', true)`);
    rmSync(standby.dataDirectory, { recursive: true, force: true });
    // Files may vanish meanwhile; what is missing then is in the log that the standby replays.
    await runCommand(['cp', '-a', primary.dataDirectory, standby.dataDirectory], { timeoutMs: 120_000 });
    const stopped = await client.query<{ labelfile: string }>(
      'select labelfile from pg_backup_stop(wait_for_archive => false)',
    );
    return stopped.rows[0]?.labelfile ?? '';
  });
  const inside = (name: string) => join(standby.dataDirectory, name);
  for (const name of readdirSync(inside('pg_wal'))) {
    if (/^[0-9A-F]{24}/.test(name)) rmSync(inside(join('pg_wal', name)), { force: true });
  }
  rmSync(inside('postmaster.pid'), { force: true });
  writeFileSync(inside('backup_label'), label);
  writeFileSync(inside('standby.signal'), '');
  const connection = `host=${primary.machine.address} user=${DATABASE_USER} password=${password} application_name=standby connect_timeout=3`;
  appendFileSync(inside('postgresql.auto.conf'), `primary_conninfo = '${connection}'\n`);
}

function clientUrl(host: string, password: string): string {
  return `postgres://${DATABASE_USER}:${password}@${host}/postgres`;
}

async function queryAt<Row extends object>(url: string, text: string, timeoutMs: number): Promise<Row[]> {
  return await withClient(url, timeoutMs, async (client) => (await client.query<Row>(text)).rows);
}

async function withClient<T>(
  connectionString: string,
  timeoutMs: number,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: Math.min(timeoutMs, 5_000),
    query_timeout: timeoutMs,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    void client.end().catch(() => undefined);
  }
}
