import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startMinio } from '../../dev/embedded/minio.ts';
import { answersOk } from '../../dev/embedded/ports.ts';
import type { PartDefinition } from '../../dev/embedded/process-part.ts';
import { NODE_FLAGS, PROCESS_ENVIRONMENT } from '../../src/platform/config/process-options.ts';
import { makeSecretBox, parseEncryptionKeys, type SecretBox } from '../../src/platform/crypto/secret-box.ts';
import { type DatabasePool, openDatabase } from '../../src/platform/postgres/database.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { loadWorkflowBundle } from '../../src/worker/workflow-bundle.ts';
import { createDrillSupervisor, type DrillSupervisor } from '../../test/drill/drill-supervisor.ts';
import { silentLogger } from '../../test/support/silent-logger.ts';
import { ageDatabase } from '../stack/aged-database.ts';
import { APP_SECRET } from '../stack/settings.ts';
import { type DatabasePair, startDatabasePair } from './database-pair.ts';
import { type Machine, makeNetwork, type Network, removeDirectory } from './machines.ts';
import { findPrograms, type Programs } from './programs.ts';
import { publicProxy, temporalBalancer } from './proxy.ts';
import { makeNamespace, makeTemporalSchema, NAMESPACE, temporalNode } from './temporal.ts';

const MAIN_SCRIPT = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const API_COUNT = 3;
const MOST_WORKERS = 8;

/** How long one webhook may take. A lease lasts twice as long: what a dead worker had claimed is free then. */
export const WEBHOOK_TIMEOUT_MS = 5_000;

/** Heliograph on machines of its own, each role as often as in an installation that has outgrown one. */
export type Installation = {
  network: Network;
  programs: Programs;
  supervisor: DrillSupervisor;
  pair: DatabasePair;
  /** The product's database, from outside. */
  database: DatabasePool;
  secretBox: SecretBox;
  ingress: { host: string; port: number; appSecret: string };
  machine(name: string): Machine;
  /** What runs on a machine now. */
  definition(name: string): PartDefinition;
  /** Names of the workers that run now. */
  workers(): string[];
  /** Lets so many workers run. */
  setWorkers(count: number): Promise<void>;
  /** The machine dies: the others hear nothing more of it, not even that it refuses. */
  crash(name: string): Promise<void>;
  /** Starts what a definition says, in place of what runs there. */
  replace(definition: PartDefinition): Promise<void>;
  stop(): Promise<void>;
};

export type InstallationOptions = {
  log: (line: string) => void;
  onCrash: (part: string, how: string) => void;
  /** Keeps data and logs. */
  keep: boolean;
};

/** Starts everything but the workers. */
export async function startInstallation(options: InstallationOptions): Promise<Installation> {
  const programs = await findPrograms(options.log);
  const network = makeNetwork();
  const dataDir = mkdtempSync(join(tmpdir(), 'heliograph-cluster-'));
  const supervisor = createDrillSupervisor(options);
  const watching = new AbortController();
  const cleanups = [
    async () => (options.keep ? options.log(`data and logs are in ${dataDir}`) : removeDirectory(dataDir)),
    async () => network.remove(),
    () => supervisor.stop(),
    async () => watching.abort(),
  ];
  const stop = async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  try {
    const base = { ...options, programs, network, dataDir, supervisor, signal: watching.signal };
    const installation = await assemble(base);
    cleanups.push(installation.database.destroy);
    return { ...installation, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

type Base = InstallationOptions & {
  programs: Programs;
  network: Network;
  dataDir: string;
  supervisor: DrillSupervisor;
  signal: AbortSignal;
};

async function assemble(base: Base): Promise<Omit<Installation, 'stop'>> {
  const { network, programs, supervisor, log } = base;
  const logDir = join(base.dataDir, 'logs');
  mkdirSync(logDir);
  const machines = makeMachines(network);
  const machine = (name: string) => found(machines, name);
  const definitions = new Map<string, PartDefinition>();
  const start = async (definition: PartDefinition) => {
    definitions.set(definition.name, definition);
    await supervisor.start(definition);
  };
  const [pair, minio] = await Promise.all([
    startPair(base, [machine('db-1'), machine('db-2')]),
    startStore(base, machine('store'), start),
  ]);
  void pair.watch(base.signal);
  log('PostgreSQL is ready: a primary and a synchronous standby');
  await startTemporal(base, pair, machine, start);
  log('Temporal is ready: two nodes');
  const encryptionKeys = `cluster:${randomBytes(32).toString('base64')}`;
  const settings = {
    ...productSettings(network, machine),
    ...minio,
    HELIOGRAPH_ENCRYPTION_KEYS: encryptionKeys,
  };
  const common = { ...settings, HELIOGRAPH_DATABASE_URL: pair.url('heliograph') };
  const database = openDatabase({
    url: pair.url('heliograph'),
    poolMax: 2,
    applicationName: 'heliograph-cluster',
  });
  await Promise.all([migrate(database), loadWorkflowBundle(silentLogger)]);
  await ageDatabase(database);
  const apis = apiNames().map(machine);
  await Promise.all(apis.map((one) => start(heliographPart(one, 'api', common, logDir))));
  const proxy = machine('proxy');
  const proxyOptions = {
    haproxy: programs.haproxy,
    dataDir: base.dataDir,
    logDir,
    machine: proxy,
    behind: apis,
  };
  await start(publicProxy(proxyOptions));
  log('three APIs and their proxy are ready');
  const workers = keepWorkers((name) => heliographPart(machine(name), 'worker', common, logDir));
  return {
    network,
    programs,
    supervisor,
    pair,
    database,
    machine,
    secretBox: makeSecretBox(parseEncryptionKeys(encryptionKeys)),
    ingress: { host: proxy.address, port: 8080, appSecret: APP_SECRET },
    definition: (name) =>
      [pair.primary(), pair.standby()].find((server) => server?.machine.name === name)?.definition ??
      found(definitions, name),
    workers: workers.names,
    setWorkers: (count) => workers.set({ supervisor, start }, count),
    crash: async (name) => {
      machine(name).unplug();
      machine(name).killAll();
      await supervisor.remove(name, 'kill');
    },
    replace: async (definition) => {
      await supervisor.remove(definition.name, 'stop');
      await start(definition);
    },
  };
}

function apiNames(): string[] {
  return Array.from({ length: API_COUNT }, (_, n) => `api-${n + 1}`);
}

function makeMachines(network: Network): Map<string, Machine> {
  const workers = Array.from({ length: MOST_WORKERS }, (_, n) => `worker-${n + 1}`);
  const others = ['proxy', 'db-1', 'db-2', 'store', 'temporal-lb', 'temporal-1', 'temporal-2'];
  return new Map([...others, ...apiNames(), ...workers].map((name) => [name, network.machine(name)]));
}

function found<T>(all: ReadonlyMap<string, T>, name: string): T {
  const one = all.get(name);
  if (one === undefined) throw new Error(`there is no ${name}`);
  return one;
}

async function startPair(base: Base, machines: readonly [Machine, Machine]): Promise<DatabasePair> {
  const { network, programs, supervisor, dataDir, log } = base;
  const pair = await startDatabasePair({
    network,
    machines,
    supervisor,
    dataDir,
    log,
    programs: programs.postgres,
    cidr: network.cidr,
    logDir: join(dataDir, 'logs'),
    password: randomBytes(12).toString('hex'),
  });
  await pair.primary().query('create database heliograph');
  return pair;
}

type Start = (definition: PartDefinition) => Promise<void>;

async function startStore(base: Base, machine: Machine, start: Start): Promise<Record<string, string>> {
  const inMachine: Start = (definition) =>
    start({ ...definition, name: machine.name, launcher: machine.launcher });
  const credentials = await startMinio(
    { ...base.supervisor, start: inMachine },
    {
      binary: base.programs.minio,
      dataDir: join(base.dataDir, 'store'),
      logFile: join(base.dataDir, 'logs', 'store.log'),
      host: machine.address,
      port: 9000,
      consolePort: 9001,
    },
  );
  return {
    HELIOGRAPH_OBJECT_STORE_URL: `http://${machine.address}:9000`,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: credentials.accessKey,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: credentials.secretKey,
  };
}

async function startTemporal(
  { programs, network, dataDir }: Base,
  pair: DatabasePair,
  machine: (name: string) => Machine,
  start: Start,
): Promise<void> {
  const password = new URL(pair.url('temporal')).password;
  const database = { address: network.floatingAddress, password };
  const logDir = join(dataDir, 'logs');
  await makeTemporalSchema(programs, database);
  const nodes = ['temporal-1', 'temporal-2'].map(machine);
  await Promise.all(nodes.map((node) => start(temporalNode(node, programs, database, logDir))));
  const { haproxy } = programs;
  const balancer = machine('temporal-lb');
  await start(temporalBalancer({ haproxy, dataDir, logDir, machine: balancer, behind: nodes }));
  await makeNamespace(`${balancer.address}:7233`);
}

/** Those of production, but webhooks go out of the cluster over http. */
function productSettings(network: Network, machine: (name: string) => Machine): Record<string, string> {
  return {
    HELIOGRAPH_MODE: 'development',
    HELIOGRAPH_TEMPORAL_ADDRESS: `${machine('temporal-lb').address}:7233`,
    HELIOGRAPH_TEMPORAL_NAMESPACE: NAMESPACE,
    HELIOGRAPH_API_HOST: '0.0.0.0',
    HELIOGRAPH_API_PORT: '8080',
    HELIOGRAPH_WORKER_HEALTH_PORT: '8081',
    HELIOGRAPH_PUBLIC_URL: 'https://gateway.example',
    HELIOGRAPH_TRUST_PROXY: `${machine('proxy').address}/32`,
    // Nobody listens there: nothing here needs the Graph API.
    HELIOGRAPH_UPSTREAM_GRAPH_URL: `http://${network.outside}:9`,
    HELIOGRAPH_UPSTREAM_APP_SECRETS: APP_SECRET,
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'cluster-verify-token',
    HELIOGRAPH_WEBHOOK_TIMEOUT_MS: String(WEBHOOK_TIMEOUT_MS),
    HELIOGRAPH_WEBHOOK_CONNECT_TIMEOUT_MS: '2000',
    HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: Array(50).fill(2).join(','),
    HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'true',
    HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: network.cidr,
  };
}

function heliographPart(
  machine: Machine,
  command: 'api' | 'worker',
  settings: Readonly<Record<string, string>>,
  logDir: string,
): PartDefinition {
  const port = command === 'api' ? 8080 : 8081;
  return {
    name: machine.name,
    launcher: machine.launcher,
    command: process.execPath,
    args: [...NODE_FLAGS, MAIN_SCRIPT, command],
    env: { ...PROCESS_ENVIRONMENT, PATH: process.env.PATH, HOME: process.env.HOME, ...settings },
    logFile: join(logDir, `${machine.name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 40_000,
    isReady: () => answersOk(`http://${machine.address}:${port}/readyz`),
  };
}

function keepWorkers(define: (name: string) => PartDefinition) {
  let running: string[] = [];
  return {
    names: () => running,
    set: async ({ supervisor, start }: { supervisor: DrillSupervisor; start: Start }, count: number) => {
      const before = running;
      running = Array.from({ length: count }, (_, n) => `worker-${n + 1}`);
      const ended = before.filter((name) => !running.includes(name));
      await Promise.all(ended.map((name) => supervisor.remove(name, 'stop')));
      const begun = running.filter((name) => !before.includes(name));
      await Promise.all(begun.map((name) => start(define(name))));
    },
  };
}
