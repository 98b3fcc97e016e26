import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answersOk } from './http-probe.ts';
import { minimalEnvironment } from './minimal-environment.ts';
import type { PartDefinition } from './process-part.ts';
import type { Supervisor } from './supervisor.ts';

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
    readyTimeoutMs: 60_000,
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
