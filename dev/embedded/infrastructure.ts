import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureBinary, findBinary } from './binaries.ts';
import { binarySource } from './binary-sources.ts';
import { type MinioCredentials, minioCredentials, startMinio } from './minio.ts';
import { answersOk, type InfrastructurePorts } from './ports.ts';
import { startPostgres } from './postgres.ts';
import type { PartDefinition } from './process-part.ts';
import { minimalEnvironment } from './run-command.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';

export interface InfrastructureOptions {
  /** State, logs and secrets are kept here; see startEmbedded for the rules about its content. */
  readonly dataDir: string;
  readonly ports: InfrastructurePorts;
  /** False (tests) trades safety on power loss for speed; a kill of a process loses nothing either way. */
  readonly durable: boolean;
  readonly log: (line: string) => void;
  /** Of PostgreSQL, `name=value`, beside those that every one gets. */
  readonly postgresSettings?: readonly string[];
  /** Runs the parts together with others; by default the infrastructure has a supervisor of its own. */
  readonly supervisor?: Supervisor;
  /** Does not wait for a server whose program has yet to be fetched or built: it joins when it is there. */
  readonly joinLater?: boolean;
}

/** What can join later. */
export type LateServer = 'Temporal' | 'MinIO';

/** PostgreSQL, Temporal and MinIO, ready for use. */
export interface Infrastructure {
  /** Holds the password. */
  readonly postgresUrl: string;
  readonly temporalAddress: string;
  readonly temporalUiUrl: string;
  readonly minioUrl: string;
  readonly minioConsoleUrl: string;
  readonly minioCredentials: MinioCredentials;
  /** Those whose programs are not here yet; a server that has joined is taken out. */
  readonly missing: ReadonlySet<LateServer>;
  /** The process numbers now; they change when a crashed server is restarted. */
  pids(): Record<string, number>;
  stop(): Promise<void>;
}

/**
 * Starts the three servers side by side and keeps them running.
 * When one fails, the others are stopped and the error names it and shows its last log lines.
 */
export async function startInfrastructure(options: InfrastructureOptions): Promise<Infrastructure> {
  const { dataDir, ports, log } = options;
  const supervisor = options.supervisor ?? ownSupervisor(options);
  const settings = options.postgresSettings ?? [];
  const missing = new Set<LateServer>();
  const [postgresUrl] = await allOrStop(supervisor, [
    timed(
      log,
      'PostgreSQL',
      startPostgres(supervisor, { ...place(options, 'postgres'), port: ports.postgres, settings }),
    ),
    ...lateServers(supervisor, options).map((server) =>
      startOrJoin(server, { ...options, supervisor, missing }),
    ),
  ]);
  return {
    postgresUrl,
    missing,
    minioCredentials: minioCredentials(join(dataDir, 'minio')),
    temporalAddress: `127.0.0.1:${ports.temporal}`,
    temporalUiUrl: temporalUiUrl(ports),
    minioUrl: `http://127.0.0.1:${ports.minio}`,
    minioConsoleUrl: minioConsoleUrl(ports),
    pids: supervisor.pids,
    stop: supervisor.stop,
  };
}

function temporalUiUrl(ports: InfrastructurePorts): string {
  return `http://127.0.0.1:${ports.temporalUi}`;
}

function minioConsoleUrl(ports: InfrastructurePorts): string {
  return `http://127.0.0.1:${ports.minioConsole}`;
}

interface LateServerParts {
  readonly name: LateServer;
  readonly program: 'temporal' | 'minio';
  readonly url: string;
  /** What does not work without it. */
  readonly waiting: string;
  start(binary: string): Promise<unknown>;
}

function lateServers(supervisor: Supervisor, options: InfrastructureOptions): LateServerParts[] {
  const { ports } = options;
  return [
    {
      name: 'Temporal',
      program: 'temporal',
      url: temporalUiUrl(ports),
      waiting: 'replies, media and e-mails wait',
      start: (binary) =>
        startTemporal(supervisor, {
          ...place(options, 'temporal'),
          binary,
          port: ports.temporal,
          uiPort: ports.temporalUi,
        }),
    },
    {
      name: 'MinIO',
      program: 'minio',
      url: minioConsoleUrl(ports),
      waiting: 'media waits',
      start: (binary) =>
        startMinio(supervisor, {
          ...place(options, 'minio'),
          binary,
          port: ports.minio,
          consolePort: ports.minioConsole,
        }),
    },
  ];
}

type StartOptions = InfrastructureOptions & { supervisor: Supervisor; missing: Set<LateServer> };

async function startOrJoin(
  server: LateServerParts,
  { log, joinLater, missing, supervisor }: StartOptions,
): Promise<void> {
  const source = binarySource(server.program);
  const options = { env: process.env, log };
  const found = findBinary(source, process.env);
  if (found !== undefined || joinLater !== true) {
    await timed(log, server.name, server.start(found ?? (await ensureBinary(source, options))));
    return;
  }
  missing.add(server.name);
  const begin = performance.now();
  void ensureBinary(source, options)
    .then(server.start)
    .then(() => {
      missing.delete(server.name);
      log(`${server.name} is ready after ${secondsSince(begin)} s: ${server.url}`);
    })
    .catch((error: Error) => {
      if (!supervisor.isStopping())
        log(`${error.message}\n${server.name} is not there: ${server.waiting}, the rest goes on.`);
    });
}

function secondsSince(begin: number): string {
  return ((performance.now() - begin) / 1_000).toFixed(1);
}

function ownSupervisor({ dataDir, log }: InfrastructureOptions): Supervisor {
  return createSupervisor({
    log,
    recordFile: join(dataDir, 'pids.json'),
    onGiveUp: (error) => log(error.message),
  });
}

function place({ dataDir, durable }: InfrastructureOptions, name: string) {
  return { durable, dataDir: join(dataDir, name), logFile: join(dataDir, 'logs', `${name}.log`) };
}

/** Waits for all before it throws, so that no part is still starting while the others are stopped. */
async function allOrStop<T extends unknown[]>(
  supervisor: Supervisor,
  starts: { [K in keyof T]: Promise<T[K]> },
): Promise<T> {
  try {
    return (await Promise.all(starts)) as T;
  } catch (error) {
    await supervisor.stop();
    await Promise.allSettled(starts);
    throw error;
  }
}

async function timed<T>(log: (line: string) => void, name: string, work: Promise<T>): Promise<T> {
  const begin = performance.now();
  const result = await work;
  log(`${name} is ready (${secondsSince(begin)} s)`);
  return result;
}

interface TemporalOptions {
  readonly binary: string;
  readonly dataDir: string;
  readonly logFile: string;
  readonly port: number;
  readonly uiPort: number;
  /** False trades safety on power loss for speed. */
  readonly durable: boolean;
}

const NAMESPACE = 'default';

/** What operators search by in the Temporal UI. */
const SEARCH_ATTRIBUTES = [
  'HeliographTenantId',
  'HeliographWabaId',
  'HeliographEndpointId',
  'HeliographEventId',
  'HeliographEventType',
];

/** One partition per task queue: exact priority and fewer hops. Eager activities save a round trip each. */
const DYNAMIC_CONFIG = {
  'system.enableActivityEagerExecution': true,
  'system.enableEagerWorkflowStart': true,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
};

/** Starts Temporal's development server on a SQLite file, with its UI and our search attributes. */
export async function startTemporal(supervisor: Supervisor, options: TemporalOptions): Promise<void> {
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const database = join(options.dataDir, 'temporal.db');
  const completeMark = join(options.dataDir, 'schema-complete');
  // The server makes its schema only where there is no file, so one that was cut off would stay broken.
  if (!existsSync(completeMark)) removeDatabase(database);
  await supervisor.start(partDefinition(options, database));
  writeFileSync(completeMark, '');
}

function partDefinition(options: TemporalOptions, database: string): PartDefinition {
  return {
    name: 'temporal',
    command: options.binary,
    args: serverArguments(options, database),
    env: minimalEnvironment(),
    logFile: options.logFile,
    stopSignal: 'SIGTERM',
    stopGraceMs: 10_000,
    isServer: true,
    // Asked through the UI, so that one answer proves server, namespace, search attributes and UI.
    isReady: () =>
      answersOk(`http://127.0.0.1:${options.uiPort}/api/v1/namespaces/${NAMESPACE}/search-attributes`),
  };
}

function serverArguments(options: TemporalOptions, database: string): string[] {
  return [
    ...['server', 'start-dev', '--db-filename', database],
    ...['--ip', '127.0.0.1', '--port', String(options.port), '--ui-port', String(options.uiPort)],
    ...['--namespace', NAMESPACE, '--log-level', 'warn', '--color', 'never'],
    ...['--sqlite-pragma', 'journal_mode=WAL'],
    ...['--sqlite-pragma', `synchronous=${options.durable ? 'NORMAL' : 'OFF'}`],
    ...Object.entries(DYNAMIC_CONFIG).flatMap(([key, value]) => [
      '--dynamic-config-value',
      `${key}=${value}`,
    ]),
    ...SEARCH_ATTRIBUTES.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
  ];
}

function removeDatabase(database: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${database}${suffix}`, { force: true });
}
