import { type AddressInfo, createServer } from 'node:net';
import type { Logger } from 'pino';
import type { ApiDependencies } from './api/app.ts';
import type { KeepAtOnce } from './ingest/intake/store-bodies.ts';
import { type Config, loadConfig } from './platform/config/config.ts';
import { InvalidSettingsError, redactedSettings } from './platform/config/read-settings.ts';
import { lowerHelperThreads } from './platform/helper-threads.ts';
import { openLogger } from './platform/logger.ts';
import { DatabaseRefusedError, refuseDatabase } from './platform/postgres/server-checks.ts';
import { openTemporalConnection } from './platform/temporal/client-connection.ts';
import type { WorkerHealth } from './worker/health.ts';
import type { RunningWorker, WorkerOptions } from './worker/start-worker.ts';

/** Loads what sends traces only where they are asked for. */
async function traceIfWanted(config: Config, service: string): Promise<{ close(): Promise<void> }> {
  if (config.traces.url === '') return { close: async () => undefined };
  const { startTracing } = await import('./platform/tracing.ts');
  const { splitUpstreamBody } = await import('./ingest/split/upstream-items.ts');
  const { traceKeyOf } = await import('./engine/deliveries/trace-key.ts');
  const { tracedItem } = await import('./ingest/intake/intake-tools.ts');
  const eventsOf = (body: Buffer) => splitUpstreamBody(body).items.map(tracedItem);
  const logger = openLogger(config, 'traces');
  return startTracing({ ...config.traces, service, eventsOf, traceKeyOf, logger });
}

/** Runs the API process until SIGTERM or SIGINT. */
export async function serveApi(): Promise<void> {
  const config = await startOrExit();
  const traces = await traceIfWanted(config, 'heliograph-api');
  await runApi(config);
  await traces.close();
}

async function runApi(
  config: Config,
  given: Pick<ApiDependencies, 'keepAtOnce' | 'workerHealth'> = {},
): Promise<void> {
  const { startApi } = await import('./api/start-api.ts');
  const { makeDeliveryStart } = await import('./engine/deliveries/delivery-starter.ts');
  const temporal = openTemporalConnection(config);
  try {
    const startDelivery = makeDeliveryStart(config, temporal);
    // The API listens for a signal until it stops. One that comes later must not end the process half-way.
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => undefined);
    const consolePages =
      config.mode === 'development' && config.sandbox.controlUrl !== ''
        ? (await import('../dev/console/console-pages.ts')).sandboxPages
        : undefined;
    await startApi(config, process.env, { temporal, startDelivery, consolePages, ...given });
  } finally {
    await temporal.close();
  }
}

/** Runs the worker process until SIGTERM or SIGINT. */
export async function serveWorker(): Promise<void> {
  const config = await startOrExit();
  const traces = await traceIfWanted(config, 'heliograph-worker');
  const signal = Promise.withResolvers<void>();
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => signal.resolve());
  const worker = await beginWorker(config);
  process.on('unhandledRejection', (error) => worker.logger.error({ err: error }, 'unhandled rejection'));
  await Promise.race([signal.promise, worker.starting.then(() => signal.promise)]);
  await endWorker(worker, traces);
}

/**
 * Runs API and worker in one process until SIGTERM or SIGINT. What the ingress gets is ingested by the transaction that
 * keeps it, where that is possible at once, and delivered from here.
 */
export async function serveAll(config: Config): Promise<void> {
  const traces = await traceIfWanted(config, 'heliograph');
  let keepAtOnce: KeepAtOnce = (bodies) => ({ usual: bodies, tried: [], isKept: Promise.resolve(true) });
  let workerHealth: () => Promise<WorkerHealth | null> = async () => null;
  const worker = await beginWorker(config, {
    onDirectIntake: (directIntake) => {
      keepAtOnce = directIntake;
    },
    onHealth: (health) => {
      workerHealth = health;
    },
  });
  const failed = worker.starting.then(() => new Promise<never>(() => undefined));
  await Promise.race([
    runApi(config, { keepAtOnce: (...given) => keepAtOnce(...given), workerHealth: () => workerHealth() }),
    failed,
  ]);
  await endWorker(worker, traces);
}

type BegunWorker = { logger: Logger; starting: Promise<RunningWorker>; drainTimeoutMs: number };

async function beginWorker(
  config: Config,
  given: Pick<WorkerOptions, 'onDirectIntake' | 'onHealth'> = {},
): Promise<BegunWorker> {
  const logger = openLogger(config, 'worker');
  logger.info({ settings: redactedSettings(process.env) }, 'worker starts');
  const { installTemporalRuntime } = await import('./platform/temporal/worker-connection.ts');
  const { startWorker } = await import('./worker/start-worker.ts');
  const metricsAddress = config.workerHealthPort < 0 ? undefined : await freeLoopbackAddress();
  installTemporalRuntime(logger, metricsAddress);
  const sdkMetrics = metricsAddress === undefined ? undefined : () => readSdkMetrics(metricsAddress);
  const starting = startWorker(config, logger, { ...given, sdkMetrics });
  return { logger, starting, drainTimeoutMs: config.workerDrainTimeoutMs };
}

/** The SDK wants the number of a port that is free. */
async function freeLoopbackAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

const SDK_METRICS_WITHIN_MS = 1_000;

/** What Temporal's SDK serves on an address of this process alone; nothing when it does not answer. */
async function readSdkMetrics(address: string): Promise<string> {
  try {
    const signal = AbortSignal.timeout(SDK_METRICS_WITHIN_MS);
    const response = await fetch(`http://${address}/metrics`, { signal });
    return response.ok ? await response.text() : '';
  } catch {
    return '';
  }
}

async function endWorker(
  { logger, starting, drainTimeoutMs }: BegunWorker,
  traces: { close(): Promise<void> },
): Promise<never> {
  logger.info('worker stops');
  setTimeout(() => {
    logger.error('shutdown timed out; work in progress will be retried');
    process.exit(1);
  }, drainTimeoutMs).unref();
  const running = await Promise.race([starting, nothingAfter(STILL_STARTING_MS)]);
  await running?.stop();
  await traces.close();
  process.exit(0);
}

/** A worker that is stopped while it still waits for Temporal has nothing to finish. */
const STILL_STARTING_MS = 1_000;

function nothingAfter(ms: number): Promise<null> {
  return new Promise((resolve) => setTimeout(resolve, ms, null));
}

/** Begins a process: its settings, or a plain list of what is wrong with them, or why their database cannot be used, and `notes`. */
export async function startOrExit(notes: readonly string[] = []): Promise<Config> {
  lowerHelperThreads();
  try {
    const config = loadConfig(process.env);
    await refuseDatabase(config.database);
    return config;
  } catch (error) {
    if (!(error instanceof InvalidSettingsError || error instanceof DatabaseRefusedError)) throw error;
    process.stderr.write(`${[error.message, ...notes].join('\n')}\n`);
    process.exit(2);
  }
}
