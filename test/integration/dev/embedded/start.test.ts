import { type ChildProcess, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ensureBinaries } from '../../../../dev/embedded/binaries.ts';
import { acquireLock } from '../../../../dev/embedded/exclusive-lock.ts';
import { findFreePorts, type PortName } from '../../../../dev/embedded/ports.ts';
import { commandLineOf } from '../../../../dev/embedded/process-identity.ts';
import type { EmbeddedDescription } from '../../../../src/platform/local-stack/embedded-description.ts';

const APPLICATION = fileURLToPath(new URL('./demo-application.ts', import.meta.url));
const VARIABLES: Readonly<Record<PortName, string>> = {
  api: 'HELIOGRAPH_EMBEDDED_API_PORT',
  https: 'HELIOGRAPH_EMBEDDED_HTTPS_PORT',
  temporal: 'HELIOGRAPH_EMBEDDED_TEMPORAL_PORT',
  temporalUi: 'HELIOGRAPH_EMBEDDED_TEMPORAL_UI_PORT',
  postgres: 'HELIOGRAPH_EMBEDDED_POSTGRES_PORT',
  minio: 'HELIOGRAPH_EMBEDDED_MINIO_PORT',
  minioConsole: 'HELIOGRAPH_EMBEDDED_MINIO_CONSOLE_PORT',
  sandbox: 'HELIOGRAPH_EMBEDDED_SANDBOX_PORT',
  receiver: 'HELIOGRAPH_EMBEDDED_RECEIVER_PORT',
  workerHealth: 'HELIOGRAPH_EMBEDDED_WORKER_HEALTH_PORT',
  apiMetrics: 'HELIOGRAPH_EMBEDDED_API_METRICS_PORT',
};

/** Also on a machine with much else to do. */
const WITHIN_MS = 120_000;

let root: string;
let dataDir: string;
let env: Record<string, string | undefined>;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'heliograph-start-'));
  dataDir = join(root, 'data');
  const ports = await findFreePorts(Object.keys(VARIABLES).length);
  const settings = Object.values(VARIABLES).map((variable, index) => [variable, String(ports[index])]);
  env = { ...process.env, ...Object.fromEntries(settings), HELIOGRAPH_TEST_RUN: root };
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Run {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly exitCode: Promise<number | null>;
  readonly ready: () => Promise<void>;
}

const start = (...flags: string[]): Run => startIn(dataDir, { flags });

function startIn(
  directory: string,
  { flags = [], env: itsEnv = env }: { flags?: string[]; env?: typeof env },
): Run {
  const child = spawn(process.execPath, [APPLICATION, 'start', directory, ...flags], { env: itsEnv });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const exitCode = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await exitCode;
  });
  const ready = () => vi.waitFor(() => expect(output).toContain('Heliograph is ready'), WITHIN_MS);
  return { child, exitCode, ready, output: () => output };
}

function description(): EmbeddedDescription {
  return JSON.parse(readFileSync(join(dataDir, 'embedded.json'), 'utf8'));
}

/** Every process that was started from here: our own inherit the mark, the servers name their directory. */
function processesHere(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => commandLineOf(pid).includes(root) || environmentOf(pid).includes(root))
    .map(commandLineOf);
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return '';
  }
}

async function countStarts(): Promise<number> {
  const client = new pg.Client({ connectionString: description().postgresUrl });
  await client.connect();
  const { rows } = await client.query('select count(*)::int as count from starts');
  await client.end();
  return rows[0].count;
}

describe('npm start, with stand-ins for our own processes', { timeout: 3 * WITHIN_MS }, () => {
  test('ends ready, writes embedded.json, is refused a second time, and stops without a trace', async () => {
    const run = start();
    await run.ready();
    const { pids, ...contract } = description();
    expect(statSync(join(dataDir, 'embedded.json')).mode & 0o777).toBe(0o600);
    expect(Object.keys(contract).sort()).toEqual(
      [
        ...[
          'apiUrl',
          'publicUrl',
          'httpsUrl',
          'caPath',
          'ingressUrl',
          'temporalAddress',
          'temporalUiUrl',
          'postgresUrl',
        ],
        ...['minioUrl', 'minioAccessKey', 'minioSecretKey'],
        ...['sandboxUrl', 'receiverUrl', 'upstream', 'tenants', 'portalUrl', 'portalUsers'],
      ].sort(),
    );
    expect(Object.keys(pids).sort()).toEqual([
      'api',
      'minio',
      'postgres',
      'printer',
      'supervisor',
      'temporal',
    ]);
    expect(await (await fetch(contract.apiUrl)).json()).toEqual({
      port: Number(env[VARIABLES.api]),
      databaseUrl: contract.postgresUrl,
      mode: 'development',
    });
    await vi.waitFor(() => expect(run.output()).toContain('printed by a part'), WITHIN_MS);
    expect(run.output()).toContain(contract.tenants[0]?.apiKey);

    const second = start();
    expect(await second.exitCode).toBe(1);
    expect(second.output()).toContain(`runs already in ${dataDir} (process ${run.child.pid})`);
    const freshSecond = start('--fresh');
    expect(await freshSecond.exitCode).toBe(1);
    expect((await fetch(contract.apiUrl)).status).toBe(200);

    run.child.kill('SIGTERM');
    expect(await run.exitCode).toBe(0);
    expect(processesHere()).toEqual([]);
    expect(description()).toEqual({ ...contract, pids: {} });
  });

  test('a crashed process is named with its new number in embedded.json; data and keys survive a restart', async () => {
    const before = description();
    const run = start();
    await run.ready();
    expect(description().tenants).toEqual(before.tenants);
    expect(description().postgresUrl).toBe(before.postgresUrl);
    expect(await countStarts()).toBe(2);
    const { api = 0 } = description().pids;
    process.kill(api, 'SIGKILL');
    await vi.waitFor(() => expect(run.output()).toContain('api is ready again'), WITHIN_MS);
    expect(run.output()).toContain('api stopped unexpectedly (signal SIGKILL)');
    expect(description().pids.api).toBeGreaterThan(1);
    expect(description().pids.api).not.toBe(api);

    // As npm does with a terminal's Ctrl-C: twice, at once.
    run.child.kill('SIGINT');
    run.child.kill('SIGINT');
    expect(await run.exitCode).toBe(0);
    expect(run.output()).not.toMatch(/printer stopped unexpectedly/);
    expect(processesHere()).toEqual([]);
  });

  test('a killed supervisor leaves no process, and the next start has the data', async () => {
    const run = start();
    await run.ready();
    run.child.kill('SIGKILL');
    await run.exitCode;
    await vi.waitFor(() => expect(processesHere()).toEqual([]), WITHIN_MS);
    const next = start();
    await next.ready();
    expect(await countStarts()).toBe(4);
    next.child.kill('SIGTERM');
    expect(await next.exitCode).toBe(0);
  });

  test('the end of the shell in which npm runs it stops everything', async () => {
    // Not exec'ed: the shell stays between, as it does below npm, and dies of SIGTERM.
    const program = `"${process.execPath}" "${APPLICATION}" start "${dataDir}"; true`;
    const shell = spawn('sh', ['-c', program], { env: { ...env, npm_lifecycle_event: 'start' } });
    let output = '';
    shell.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
    await vi.waitFor(() => expect(output).toContain('Heliograph is ready'), WITHIN_MS);
    shell.kill('SIGTERM');
    await vi.waitFor(() => expect(processesHere()).toEqual([]), WITHIN_MS);
    expect(output).toContain('stopping everything');
    expect(output).not.toContain('stopped unexpectedly');
  });

  test('an interrupted start stops what had been started', async () => {
    const run = start();
    await vi.waitFor(() => expect(run.output()).toContain('is ready ('), WITHIN_MS);
    run.child.kill('SIGINT');
    expect(await run.exitCode).toBe(130);
    expect(run.output()).not.toContain('Heliograph is ready');
    expect(processesHere()).toEqual([]);
  });

  test('fresh starts empty', async () => {
    const [before] = JSON.parse(readFileSync(join(dataDir, 'demo-tenants.json'), 'utf8'));
    const run = start('--fresh');
    await run.ready();
    expect(await countStarts()).toBe(1);
    expect(description().tenants[0]?.apiKey).toBeDefined();
    expect(description().tenants[0]?.apiKey).not.toBe(before.apiKey);
    run.child.kill('SIGTERM');
    expect(await run.exitCode).toBe(0);
  });

  test('it is ready without the programs of Temporal and MinIO; both join when they are there', async () => {
    const programs = await ensureBinaries({ env: process.env, log: () => undefined });
    const cache = join(root, 'cache', 'heliograph', 'bin');
    mkdirSync(cache, { recursive: true });
    // As if another process were building them.
    const locks = Object.keys(programs).map((name) => acquireLock(join(cache, `.${name}.lock`)));
    const { HELIOGRAPH_TEMPORAL_BIN: _temporal, HELIOGRAPH_MINIO_BIN: _minio, ...others } = env;
    const places = (env.PATH ?? '').split(delimiter);
    const without = (folder: string) => !Object.keys(programs).some((name) => existsSync(join(folder, name)));
    const PATH = places.filter(without).join(delimiter);
    const run = startIn(dataDir, { env: { ...others, PATH, XDG_CACHE_HOME: join(root, 'cache') } });
    await run.ready();
    expect(run.output()).toContain(
      'Until Temporal and MinIO join, replies, media and e-mails wait; nothing is lost.',
    );
    expect(Object.keys(description().pids)).not.toContain('temporal');
    expect((await fetch(description().apiUrl)).status).toBe(200);

    for (const [name, program] of Object.entries(programs)) symlinkSync(program, join(cache, name));
    for (const lock of locks) lock.release();
    await vi.waitFor(() => expect(run.output()).toMatch(/^Temporal is ready after .*$/m), WITHIN_MS);
    await vi.waitFor(() => expect(run.output()).toMatch(/^MinIO is ready after .*$/m), WITHIN_MS);
    expect(Object.keys(description().pids)).toEqual(expect.arrayContaining(['temporal', 'minio']));
    run.child.kill('SIGTERM');
    expect(await run.exitCode).toBe(0);
    expect(run.output()).not.toContain('stopped unexpectedly');
    expect(processesHere()).toEqual([]);
  });

  test('a taken port ends the start at once with its number and variable; nothing was started', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(Number(env[VARIABLES.minio]), '127.0.0.1', resolve));
    const run = start();
    expect(await run.exitCode).toBe(1);
    server.close();
    expect(run.output()).toContain(`Port ${env[VARIABLES.minio]} for MinIO is taken by another program`);
    expect(run.output()).toContain(VARIABLES.minio);
    expect(run.output()).not.toContain('is ready');
  });

  test('a directory that is not ours ends the start untouched', async () => {
    const photos = join(root, 'photos');
    mkdirSync(photos);
    writeFileSync(join(photos, 'photo.jpg'), 'picture');
    const run = startIn(photos, { flags: ['--fresh'] });
    expect(await run.exitCode).toBe(1);
    expect(run.output()).toContain('is not a data directory of Heliograph');
    expect(readdirSync(photos)).toEqual(['photo.jpg']);
  });

  test('a part that keeps crashing ends everything with exit code 1 and its last lines', async () => {
    const run = start('--broken');
    expect(await run.exitCode).toBe(1);
    expect(run.output()).toContain('broken crashed 6 times within 60 s, so everything was stopped');
    expect(run.output()).toContain('| broken for good');
    expect(processesHere()).toEqual([]);
  });
});
