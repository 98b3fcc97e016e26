import { join } from 'node:path';
import { ensureBinaries } from './binaries.ts';
import { type MinioCredentials, startMinio } from './minio.ts';
import type { InfrastructurePorts } from './ports.ts';
import { startPostgres } from './postgres.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';
import { startTemporal } from './temporal-server.ts';

export interface InfrastructureOptions {
  /** State, logs and secrets are kept here; see startEmbedded for the rules about its content. */
  readonly dataDir: string;
  readonly ports: InfrastructurePorts;
  /** False (tests) trades safety on power loss for speed; a kill of a process loses nothing either way. */
  readonly durable: boolean;
  readonly log: (line: string) => void;
  /** Runs the parts together with others; by default the infrastructure has a supervisor of its own. */
  readonly supervisor?: Supervisor;
}

/** PostgreSQL, Temporal and MinIO, ready for use. */
export interface Infrastructure {
  /** Holds the password. */
  readonly postgresUrl: string;
  readonly temporalAddress: string;
  readonly temporalUiUrl: string;
  readonly minioUrl: string;
  readonly minioConsoleUrl: string;
  readonly minioCredentials: MinioCredentials;
  /** The process numbers now; they change when a crashed server is restarted. */
  pids(): Record<string, number>;
  stop(): Promise<void>;
}

/**
 * Starts the three servers side by side and keeps them running.
 * When one fails, the others are stopped and the error names it and shows its last log lines.
 */
export async function startInfrastructure(options: InfrastructureOptions): Promise<Infrastructure> {
  const { ports, log } = options;
  const supervisor = options.supervisor ?? ownSupervisor(options);
  const binaries = await ensureBinaries({ env: process.env, log });
  const [postgresUrl, , minioCredentials] = await allOrStop(supervisor, [
    timed(
      log,
      'PostgreSQL',
      startPostgres(supervisor, { ...place(options, 'postgres'), port: ports.postgres }),
    ),
    timed(
      log,
      'Temporal',
      startTemporal(supervisor, {
        ...place(options, 'temporal'),
        binary: binaries.temporal,
        port: ports.temporal,
        uiPort: ports.temporalUi,
      }),
    ),
    timed(
      log,
      'MinIO',
      startMinio(supervisor, {
        ...place(options, 'minio'),
        binary: binaries.minio,
        port: ports.minio,
        consolePort: ports.minioConsole,
      }),
    ),
  ]);
  return {
    postgresUrl,
    minioCredentials,
    temporalAddress: `127.0.0.1:${ports.temporal}`,
    temporalUiUrl: `http://127.0.0.1:${ports.temporalUi}`,
    minioUrl: `http://127.0.0.1:${ports.minio}`,
    minioConsoleUrl: `http://127.0.0.1:${ports.minioConsole}`,
    pids: supervisor.pids,
    stop: supervisor.stop,
  };
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
  log(`${name} is ready (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
  return result;
}
