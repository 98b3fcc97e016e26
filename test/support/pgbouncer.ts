import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { findFreePorts } from '../../dev/embedded/ports.ts';
import { choosePostgresAccount } from '../../dev/embedded/postgres-account.ts';
import { eventually } from './webhook-receiver.ts';

const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'heliograph', 'pgbouncer');

type Program = { command: string; libraries: string };

/** PgBouncer of this machine, or of Debian's packages, unpacked in the user's cache; null where neither can be had. */
export function findPgBouncer(): Program | null {
  for (const command of ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/usr/local/bin/pgbouncer'])
    if (existsSync(command)) return { command, libraries: '' };
  const command = join(CACHE, 'usr', 'sbin', 'pgbouncer');
  try {
    if (!existsSync(command)) unpackPackages();
    const architecture =
      readdirSync(join(CACHE, 'usr', 'lib')).find((name) => name.endsWith('-linux-gnu')) ?? '';
    return { command, libraries: join(CACHE, 'usr', 'lib', architecture) };
  } catch {
    return null;
  }
}

function unpackPackages(): void {
  mkdirSync(CACHE, { recursive: true });
  execFileSync('apt-get', ['download', 'pgbouncer', 'libc-ares2'], { cwd: CACHE, stdio: 'ignore' });
  for (const name of readdirSync(CACHE).filter((file) => file.endsWith('.deb')))
    execFileSync('dpkg-deb', ['-x', name, '.'], { cwd: CACHE, stdio: 'ignore' });
}

/** Since 1.21 it can keep prepared statements. */
export function keepsStatements({ command, libraries }: Program): boolean {
  const env = { ...process.env, LD_LIBRARY_PATH: libraries };
  const [, minor = '0'] =
    /PgBouncer 1\.(\d+)/.exec(execFileSync(command, ['--version'], { env, encoding: 'utf8' })) ?? [];
  return Number(minor) >= 21;
}

/** Starts it before a database, with few connections to the server, each given for one transaction. */
export async function startPgBouncer(
  { command, libraries }: Program,
  databaseUrl: string,
  settings: readonly string[] = [],
): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-pgbouncer-'));
  const [port = 0] = await findFreePorts(1);
  const { hostname, port: serverPort, username, password } = new URL(databaseUrl);
  writeFileSync(join(directory, 'users.txt'), `"${username}" "${password}"\n`);
  const lines = [
    ...['[databases]', `* = host=${hostname} port=${serverPort}`, '[pgbouncer]', 'listen_addr = 127.0.0.1'],
    ...[`listen_port = ${port}`, 'unix_socket_dir =', 'auth_type = trust'],
    ...[`auth_file = ${join(directory, 'users.txt')}`, 'pool_mode = transaction', 'default_pool_size = 3'],
    ...['max_client_conn = 200', ...settings],
  ];
  writeFileSync(join(directory, 'pgbouncer.ini'), `${lines.join('\n')}\n`);
  const { launcher } = await choosePostgresAccount(process.execPath, directory);
  const [program = command, ...args] = [...launcher, command, join(directory, 'pgbouncer.ini')];
  const child = spawn(program, args, {
    stdio: 'ignore',
    env: { ...process.env, LD_LIBRARY_PATH: libraries },
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });
  const url = new URL(databaseUrl);
  url.port = String(port);
  await eventually('PgBouncer answers', async () => {
    const client = new pg.Client({ connectionString: url.href });
    client.on('error', () => undefined);
    return await client.connect().then(
      () => client.end().then(() => true),
      () => false,
    );
  });
  return url.href;
}
