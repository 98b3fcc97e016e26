import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Infrastructure, startInfrastructure } from '../../dev/embedded/infrastructure.ts';
import { findFreePorts } from '../../dev/embedded/ports.ts';
import { findInfrastructurePorts } from '../../dev/embedded/test-infrastructure.ts';
import { makeSecretBox, parseEncryptionKeys, type SecretBox } from '../../src/platform/crypto/secret-box.ts';
import { type DatabasePool, openDatabase } from '../../src/platform/postgres/database.ts';
import { ageDatabase } from './aged-database.ts';
import { runMigrate } from './heliograph-process.ts';
import {
  type Processes,
  type Product,
  type ProductLayout,
  type ProductOptions,
  startProduct,
} from './product.ts';
import { benchSettings } from './settings.ts';

/** The whole product on this machine, as processes of its own, in a directory that `stop` removes. */
export type Stack = {
  apiPort: number;
  database: DatabasePool;
  databaseUrl: string;
  secretBox: SecretBox;
  /** The directory of the product; null: this one. */
  checkout: string | null;
  /** The process numbers now. */
  pids(): Record<string, number[]>;
  /** Starts API and workers as `layout` says, unless they run so already and need not be fresh; true: it did. */
  useProduct(layout: ProductLayout, start: { fresh: boolean }): Promise<boolean>;
  stop(): Promise<void>;
};

type StackOptions = {
  log: (line: string) => void;
  processes: Processes;
  databaseDays: number;
  /** The directory of the product; null: this one. */
  checkout: string | null;
  /** API and worker write a CPU profile here when they end; null: none. */
  profileDir: string | null;
  /** Beside those of the benchmark. */
  settings?: Readonly<Record<string, string>>;
  onCrash: (error: Error) => void;
};

/** Starts PostgreSQL (with fsync, as in production), Temporal and MinIO; API and worker when they are asked for. */
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
  { log, processes, databaseDays, checkout, profileDir, settings: more = {}, onCrash }: StackOptions,
  dataDir: string,
  cleanups: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<Stack> {
  const infrastructure = await startServers(dataDir, log);
  cleanups.push(infrastructure.stop);
  const [apiPort = 0] = await findFreePorts(1);
  const settings = { ...benchSettings(infrastructure, apiPort), ...more };
  const databaseUrl = infrastructure.postgresUrl;
  const database = openDatabase({ url: databaseUrl, poolMax: 2, applicationName: 'heliograph-bench' });
  cleanups.push(database.destroy);
  await runMigrate(settings, checkout);
  await ageDatabase(database, { days: databaseDays });
  const nodeArguments = profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
  const logDir = join(dataDir, 'logs');
  const traces = await startTracesReceiver(log);
  cleanups.push(traces.close);
  const product = keepProduct({
    processes,
    checkout,
    settings,
    tracesUrl: traces.url,
    apiPort,
    logDir,
    nodeArguments,
    onCrash,
  });
  cleanups.push(product.stop);
  return {
    apiPort,
    database,
    databaseUrl,
    checkout,
    stop,
    secretBox: makeSecretBox(parseEncryptionKeys(settings.HELIOGRAPH_ENCRYPTION_KEYS ?? '')),
    pids: () => ({ ...inLists(infrastructure.pids()), ...product.pids() }),
    useProduct: product.use,
  };
}

/** Takes traces as fast as they come, and says in the end how many bytes came. */
async function startTracesReceiver(log: (line: string) => void) {
  let [requests, bytes] = [0, 0];
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    request.on('end', () => {
      requests += 1;
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    if (requests > 0) log(`traces: ${requests} requests, ${(bytes / 1e6).toFixed(1)} MB`);
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, close };
}

/** One product at a time, exchanged for another when it has to be. */
function keepProduct(options: ProductOptions) {
  let current: { layout: ProductLayout; starting: Promise<Product> } | null = null;
  let pids: Record<string, number[]> = {};
  let stopped = false;
  // Also one that is still starting; one that failed to start has stopped itself.
  const stopCurrent = async () => {
    const started = await current?.starting.catch(() => null);
    current = null;
    await started?.stop();
  };
  return {
    pids: () => pids,
    use: async (layout: ProductLayout, { fresh }: { fresh: boolean }) => {
      if (!fresh && current !== null && isSame(current.layout, layout)) return false;
      await stopCurrent();
      if (stopped) throw new Error('the benchmark ends');
      const starting = startProduct(options, layout);
      current = { layout, starting };
      starting.catch(() => {
        current = null;
      });
      pids = (await starting).pids;
      return true;
    },
    stop: async () => {
      stopped = true;
      await stopCurrent();
    },
  };
}

function isSame(one: ProductLayout, other: ProductLayout): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function inLists(pids: Readonly<Record<string, number>>): Record<string, number[]> {
  return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, [pid]]));
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
