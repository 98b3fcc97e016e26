import { chmodSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { findFreePorts } from '../../dev/embedded/ports.ts';
import { startPostgres } from '../../dev/embedded/postgres.ts';
import { createSupervisor, type Supervisor } from '../../dev/embedded/supervisor.ts';

type Options = Pick<Parameters<typeof startPostgres>[1], 'settings' | 'programs'>;

export type OwnPostgres = {
  /** Of the database `heliograph`, empty at first. */
  url: string;
  port: number;
  /** Where its files are; the cluster is in `data`. */
  directory: string;
  stop(): Promise<void>;
  start(options?: Options): Promise<void>;
};

/** A PostgreSQL that a test may stop, set up and fail over, apart from that of all tests. */
export async function startOwnPostgres(options: Options = {}): Promise<OwnPostgres> {
  const [port = 0] = await findFreePorts(1);
  const server = makeServer(mkdtempSync(join(tmpdir(), 'heliograph-postgres-')), port);
  await server.start(options);
  return server;
}

/** A hot standby of a server, which is started anew for it. */
export async function startStandby(primary: OwnPostgres, options: Options = {}): Promise<OwnPostgres> {
  const [port = 0] = await findFreePorts(1);
  await primary.stop();
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-standby-'));
  cpSync(primary.directory, directory, { recursive: true });
  chmodSync(join(directory, 'data'), 0o700);
  await primary.start(options);
  writeFileSync(join(directory, 'data', 'standby.signal'), '');
  const { username, password, port: primaryPort } = new URL(primary.url);
  const source = `host=127.0.0.1 port=${primaryPort} user=${username} password=${password}`;
  const standby = makeServer(directory, port);
  await standby.start({ ...options, settings: [...(options.settings ?? []), `primary_conninfo=${source}`] });
  return standby;
}

function makeServer(directory: string, port: number): OwnPostgres {
  let supervisor: Supervisor | null = null;
  const stop = async () => {
    await supervisor?.stop();
    supervisor = null;
  };
  onTestFinished(async () => {
    await stop();
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  });
  const server: OwnPostgres = {
    url: '',
    port,
    directory,
    stop,
    start: async (options = {}) => {
      const recordFile = join(directory, 'pids.json');
      supervisor = createSupervisor({ log: () => undefined, recordFile, restartDelayMs: 100 });
      const place = { dataDir: directory, logFile: join(directory, 'postgres.log'), port };
      server.url = await startPostgres(supervisor, { ...place, durable: false, ...options });
    },
  };
  return server;
}
