import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DatabasePool, openDatabase } from '../../src/database/database.ts';
import { migrate } from '../../src/database/migrate.ts';
import { makeSecretBox, parseEncryptionKeys, type SecretBox } from '../../src/domain/secret-box.ts';
import { type Infrastructure, startInfrastructure } from '../../src/embedded/infrastructure.ts';
import { findFreePorts } from '../../src/embedded/ports.ts';
import { findInfrastructurePorts } from '../../src/embedded/test-infrastructure.ts';
import { type HeliographProcess, startHeliographProcess } from './heliograph-process.ts';
import { benchSettings } from './settings.ts';

export type DeliveryWorkflows = 'auto' | 'always';

/** The whole product on this machine, as processes of its own, in a directory that `stop` removes. */
export type Stack = {
  apiPort: number;
  database: DatabasePool;
  databaseUrl: string;
  secretBox: SecretBox;
  /** The process numbers now. */
  pids(): Record<string, number>;
  /** Restarts the worker when it runs with another setting of HELIOGRAPH_DELIVERY_WORKFLOWS. */
  useDeliveryWorkflows(mode: DeliveryWorkflows): Promise<void>;
  stop(): Promise<void>;
};

type StackOptions = {
  log: (line: string) => void;
  /** API and worker write a CPU profile here when they end; null: none. */
  profileDir: string | null;
  onCrash: (error: Error) => void;
};

/** Starts PostgreSQL (with fsync, as in production), Temporal and MinIO, then API and worker. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const dataDir = await mkdtemp(join(tmpdir(), 'heliograph-bench-'));
  const cleanups: (() => Promise<unknown>)[] = [() => removeDirectory(dataDir)];
  const stop = async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  try {
    return await assemble(options, dataDir, cleanups, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function assemble(
  { log, profileDir, onCrash }: StackOptions,
  dataDir: string,
  cleanups: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<Stack> {
  const infrastructure = await startServers(dataDir, log);
  cleanups.push(infrastructure.stop);
  const [api = 0, workerHealth = 0] = await findFreePorts(2);
  const settings = benchSettings(infrastructure, { api, workerHealth });
  const databaseUrl = infrastructure.postgresUrl;
  const database = openDatabase({ url: databaseUrl, poolMax: 2, applicationName: 'heliograph-bench' });
  cleanups.push(database.destroy);
  await migrate(database);

  const nodeArguments = profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
  const common = { nodeArguments, onCrash };
  const logFile = (name: string) => join(dataDir, 'logs', `${name}.log`);
  const startWorker = (own: Record<string, string>) =>
    startHeliographProcess({
      ...common,
      ...{
        name: 'worker',
        settings: { ...settings, ...own },
        port: workerHealth,
        logFile: logFile('worker'),
      },
    });
  let mode: DeliveryWorkflows = 'auto';
  let worker = startWorker({});
  let workerPid = (await worker).pid;
  let stopped = false;
  cleanups.push(async () => {
    stopped = true;
    await stopStarted(worker);
  });
  const apiProcess = await startHeliographProcess({
    ...common,
    ...{ name: 'api', settings, port: api, logFile: logFile('api') },
  });
  cleanups.push(apiProcess.stop);
  return {
    apiPort: api,
    database,
    databaseUrl,
    secretBox: makeSecretBox(parseEncryptionKeys(settings.HELIOGRAPH_ENCRYPTION_KEYS ?? '')),
    pids: () => ({
      ...infrastructure.pids(),
      api: apiProcess.pid,
      worker: workerPid,
    }),
    useDeliveryWorkflows: async (wanted) => {
      if (wanted !== mode) {
        mode = wanted;
        await stopStarted(worker);
        if (stopped) return;
        worker = startWorker(wanted === 'auto' ? {} : { HELIOGRAPH_DELIVERY_WORKFLOWS: wanted });
      }
      workerPid = (await worker).pid;
    },
    stop,
  };
}

/** Also one that is still starting; one that failed to start has stopped itself. */
async function stopStarted(starting: Promise<HeliographProcess>): Promise<void> {
  const started = await starting.catch(() => null);
  await started?.stop();
}

/** Tried again once, for another program may take a port between the choice and the start. */
async function startServers(dataDir: string, log: (line: string) => void): Promise<Infrastructure> {
  const start = async () =>
    startInfrastructure({ dataDir, ports: await findInfrastructurePorts(), durable: true, log });
  return await start().catch((error: Error) => {
    log(`starting the servers failed, trying once more: ${error.message}`);
    return start();
  });
}

async function removeDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
