import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { Connection, Client as TemporalClient } from '@temporalio/client';
import { Client as MinioClient } from 'minio';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Infrastructure, startInfrastructure } from '../../../../dev/embedded/infrastructure.ts';
import { commandLineOf, identifyProcess } from '../../../../dev/embedded/process-identity.ts';
import {
  findInfrastructurePorts,
  startTestInfrastructure,
} from '../../../../dev/embedded/test-infrastructure.ts';

const log: string[] = [];
let dataDir: string;
let ports: Awaited<ReturnType<typeof findInfrastructurePorts>>;
let servers: Infrastructure;

async function start(): Promise<Infrastructure> {
  return startInfrastructure({ dataDir, ports, durable: false, log: (line) => void log.push(line) });
}

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'heliograph-infrastructure-'));
  ports = await findInfrastructurePorts();
  servers = await start();
});

afterAll(async () => {
  await servers.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

async function query(sql: string, values: unknown[] = []): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: servers.postgresUrl, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function withTemporal<T>(work: (client: TemporalClient) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address: servers.temporalAddress, connectTimeout: '5s' });
  try {
    return await work(new TemporalClient({ connection }));
  } finally {
    await connection.close();
  }
}

function minio(): MinioClient {
  return new MinioClient({
    endPoint: '127.0.0.1',
    port: ports.minio,
    useSSL: false,
    ...servers.minioCredentials,
  });
}

/** Every process that works in or names the data directory. */
function processesOf(directory: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((name) => commandLineOf(Number(name)))
    .filter((line) => line.includes(directory));
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

/** Waits for a part to be ready again with another process. */
async function restarted(name: string, oldPid: number, since: number): Promise<void> {
  await vi.waitFor(
    () => {
      expect(servers.pids()[name]).not.toBe(oldPid);
      expect(log.slice(since).join('\n')).toContain(`${name} is ready again`);
    },
    { timeout: 120_000, interval: 20 },
  );
}

function kill(...pids: number[]): void {
  for (const pid of pids) process.kill(pid, 'SIGKILL');
}

describe('the three servers', () => {
  test('run for this user below a directory that is closed to others', () => {
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    expect(Object.keys(servers.pids()).sort()).toEqual(['minio', 'postgres', 'temporal']);
  });

  test('PostgreSQL has UTF-8, the C locale, room for connections, and listens on loopback only', async () => {
    const [row] = await query(`select current_setting('server_encoding') as encoding, datcollate as locale,
      current_setting('max_connections') as connections, current_setting('listen_addresses') as listens,
      current_setting('timezone') as zone, current_user as name
      from pg_database where datname = current_database()`);
    expect(row).toEqual({
      encoding: 'UTF8',
      locale: 'C',
      connections: '200',
      listens: '127.0.0.1',
      zone: 'UTC',
      name: 'heliograph',
    });
  });

  test('PostgreSQL refuses a wrong password', async () => {
    const connectionString = servers.postgresUrl.replace(/:[^:@]+@/, ':wrong@');
    const client = new pg.Client({ connectionString });
    await expect(client.connect()).rejects.toThrow(/password authentication failed/);
  });

  test('Temporal has our search attributes and its UI', async () => {
    const attributes = await withTemporal((client) =>
      client.connection.operatorService.listSearchAttributes({ namespace: 'default' }),
    );
    expect(Object.keys(attributes.customAttributes ?? {}).sort()).toEqual([
      'HeliographEndpointId',
      'HeliographEventId',
      'HeliographEventType',
      'HeliographTenantId',
      'HeliographWabaId',
    ]);
    expect((await fetch(servers.temporalUiUrl)).status).toBe(200);
  });

  test('MinIO takes and gives objects, and its console answers', async () => {
    await minio().makeBucket('first');
    await minio().putObject('first', 'object', 'content');
    expect((await minio().statObject('first', 'object')).size).toBe(7);
    expect((await fetch(servers.minioConsoleUrl)).status).toBe(200);
  });

  test('secrets lie in files for their owner only', () => {
    for (const file of ['postgres/password', 'minio/secret-key', 'pids.json']) {
      expect(statSync(join(dataDir, file)).mode & 0o777, file).toBe(0o600);
    }
  });
});

describe('a killed server is back on its port with its data', () => {
  beforeAll(async () => {
    await query('create table kept (value text)');
    await query('insert into kept values ($1)', ['committed']);
  });

  test('PostgreSQL, only the postmaster, while a connection is busy', async () => {
    const since = log.length;
    const pid = servers.pids().postgres ?? 0;
    const busy = query('select pg_sleep(60)').catch((error: Error) => error);
    await vi.waitFor(async () =>
      expect(await query("select 1 from pg_stat_activity where query like 'select pg_sleep%'")).toHaveLength(
        1,
      ),
    );
    kill(pid);
    await restarted('postgres', pid, since);
    expect(await busy).toBeInstanceOf(Error);
    expect(await query('select value from kept')).toEqual([{ value: 'committed' }]);
    expect(log.slice(since).join('\n')).toContain('postgres stopped unexpectedly (signal SIGKILL)');
  });

  test('PostgreSQL, the whole group', async () => {
    const since = log.length;
    const pid = servers.pids().postgres ?? 0;
    kill(pid, ...childrenOf(pid));
    await restarted('postgres', pid, since);
    expect(await query('select value from kept')).toEqual([{ value: 'committed' }]);
  });

  test('PostgreSQL, when only a backend is killed, recovers by itself in the same process', async () => {
    const pid = servers.pids().postgres ?? 0;
    const [row] = await query('select pg_backend_pid() as pid').catch(() => []);
    expect(row).toBeDefined();
    const busy = query('select pg_sleep(60)').catch((error: Error) => error);
    await vi.waitFor(async () => {
      const rows = await query("select pid from pg_stat_activity where query like 'select pg_sleep%'");
      expect(rows).toHaveLength(1);
      kill((rows[0] as { pid: number }).pid);
    });
    expect(await busy).toBeInstanceOf(Error);
    await vi.waitFor(async () => expect(await query('select value from kept')).toHaveLength(1), 15_000);
    expect(servers.pids().postgres).toBe(pid);
  });

  test('Temporal, with a workflow that waits', async () => {
    const since = log.length;
    const pid = servers.pids().temporal ?? 0;
    await withTemporal((client) =>
      client.workflow.start('waiting', { taskQueue: 'nobody', workflowId: 'survivor', args: [] }),
    );
    kill(pid);
    await restarted('temporal', pid, since);
    const description = await withTemporal((client) => client.workflow.getHandle('survivor').describe());
    expect(description.status.name).toBe('RUNNING');
  });

  test('MinIO', async () => {
    const since = log.length;
    const pid = servers.pids().minio ?? 0;
    await minio().makeBucket('second');
    await minio().putObject('second', 'object', 'content');
    kill(pid);
    await restarted('minio', pid, since);
    expect((await minio().statObject('second', 'object')).size).toBe(7);
  });
});

describe('stop and start', () => {
  test('stop leaves no process, and the next start finds everything', async () => {
    await servers.stop();
    expect(processesOf(dataDir)).toEqual([]);
    const begin = performance.now();
    servers = await start();
    const elapsedMs = performance.now() - begin;
    expect(await query('select value from kept')).toEqual([{ value: 'committed' }]);
    const description = await withTemporal((client) => client.workflow.getHandle('survivor').describe());
    expect(description.status.name).toBe('RUNNING');
    expect((await minio().statObject('second', 'object')).size).toBe(7);
    process.stdout.write(`warm start of the three servers: ${(elapsedMs / 1000).toFixed(1)} s\n`);
  });

  test('a number in postmaster.pid that now belongs to another program does not stop a start', async () => {
    await servers.stop();
    writeFileSync(
      join(dataDir, 'postgres', 'data', 'postmaster.pid'),
      `${process.pid}\n${dataDir}\n1\n${ports.postgres}\n`,
    );
    servers = await start();
    expect(await query('select value from kept')).toHaveLength(1);
    expect(identifyProcess(process.pid)).toBeDefined();
  });

  test('one server that cannot start stops the others, and the error shows its last lines', async () => {
    const other = mkdtempSync(join(tmpdir(), 'heliograph-failing-'));
    onTestFinished(() => rmSync(other, { recursive: true, force: true }));
    const taken = { ...(await findInfrastructurePorts()), postgres: ports.postgres };
    const failing = startInfrastructure({
      dataDir: other,
      ports: taken,
      durable: false,
      log: () => undefined,
    });
    const error = String(await failing.catch((reason: unknown) => reason));
    expect(error).toContain('postgres did not start');
    expect(error).toMatch(/\| .*could not bind IPv4 address "127.0.0.1"/);
    expect(processesOf(other)).toEqual([]);
  });

  test.runIf(process.getuid?.() === 0)(
    'root without user namespaces runs PostgreSQL as nobody, on the same data, and back again',
    async () => {
      await servers.stop();
      const programs = mkdtempSync(join(tmpdir(), 'heliograph-programs-'));
      writeFileSync(join(programs, 'unshare'), '#!/bin/sh\necho "Operation not permitted" >&2; exit 1\n');
      chmodSync(join(programs, 'unshare'), 0o755);
      const { PATH = '' } = process.env;
      try {
        process.env.PATH = `${programs}${delimiter}${PATH}`;
        servers = await start();
        const status = readFileSync(`/proc/${servers.pids().postgres}/status`, 'utf8');
        expect(status).toMatch(/^Uid:\s+65534/m);
        expect(await query('select value from kept')).toHaveLength(1);
        await servers.stop();
      } finally {
        process.env.PATH = PATH;
        rmSync(programs, { recursive: true });
      }
      servers = await start();
      expect(await query('select value from kept')).toHaveLength(1);
      expect(statSync(join(dataDir, 'postgres', 'data', 'PG_VERSION')).uid).toBe(0);
    },
  );

  test('the servers for tests take their directory with them when they stop', async () => {
    const own = await startTestInfrastructure(() => undefined);
    const [, database = ''] = commandLineOf(own.pids().temporal ?? 0).match(/--db-filename (\S+)/) ?? [];
    expect(existsSync(database)).toBe(true);
    await own.stop();
    expect(existsSync(dirname(dirname(database)))).toBe(false);
    expect(own.pids()).toEqual({});
  });
});
