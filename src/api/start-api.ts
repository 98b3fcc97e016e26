import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { warnOfClock } from '../ops/health/clock-warning.ts';
import { reportUnreadableSecrets } from '../ops/secrets/secret-keys.ts';
import { type Config, configWarnings } from '../platform/config/config.ts';
import { redactedSettings } from '../platform/config/read-settings.ts';
import { makeSecretBox, parseEncryptionKeys } from '../platform/crypto/secret-box.ts';
import { openedPort } from '../platform/http/opened-port.ts';
import { openLogger } from '../platform/logger.ts';
import { watchProcess } from '../platform/metrics/metrics.ts';
import { type MetricsServer, scrapeOf, startMetricsServer } from '../platform/metrics/metrics-server.ts';
import { certificateFiles, watchCertificates, watchPools } from '../platform/metrics/process-metrics.ts';
import { openObjectStore } from '../platform/object-store/object-store.ts';
import type { DatabaseOptions } from '../platform/postgres/connection.ts';
import { type DatabasePool, openDatabase } from '../platform/postgres/database.ts';
import { warnWhenNotDurable } from '../platform/postgres/server-checks.ts';
import { type ApiMetrics, makeApiMetrics } from './api-metrics.ts';
import { type ApiDependencies, buildApp } from './app.ts';
import { rehearseIngress } from './inbound/rehearsal.ts';
import { INGRESS_TIMEOUTS } from './inbound/upstream-webhook.ts';
import { announceSetUp } from './portal/users/set-up-page.ts';

const INGRESS_POOL_MAX = 4;
const LIMITS_POOL_MAX = 2;
const PORTAL_POOL_MAX = 5;
const OPERATOR_POOL_MAX = 2;

/** For as many statements as look-ups of keys (3), sessions (2) and files (1) make at a time, and to ask for readiness. */
const LOOKUP_POOL_MAX = 7;
const LOOKUP_TIMEOUTS = { statementMs: 5_000, answerMs: 6_000 };

/** By then the client has given up. */
const REQUEST_TIMEOUTS = { statementMs: 20_000, answerMs: 22_000 };

type Environment = Readonly<Record<string, string | undefined>>;

/** Resolves when SIGTERM or SIGINT has come and everything is closed. */
export async function startApi(
  config: Config,
  env: Environment,
  {
    temporal,
    startDelivery,
    ...given
  }: Required<Pick<ApiDependencies, 'temporal' | 'startDelivery'>> &
    Pick<ApiDependencies, 'keepAtOnce' | 'workerHealth' | 'consolePages'>,
): Promise<void> {
  const logger = openLogger(config, 'api');
  const settings = redactedSettings(env);
  logger.info({ settings }, 'api starts');
  for (const warning of configWarnings(config)) logger.warn(warning);
  process.on('unhandledRejection', (error) => logger.error({ err: error }, 'unhandled rejection'));
  const stop = stopSignal();
  const databases = openDatabases(config);
  const stores = openObjectStores(config);
  const metrics = makeApiMetrics();
  const isDraining = () => stop.signal.aborted;
  const tools = { config, ...databases, ...stores, logger, metrics };
  const deps = { ...tools, isDraining, temporal, startDelivery, settings, ...given };
  const servers: FastifyInstance[] = [];
  let metricsServer: MetricsServer | null = null;
  try {
    metricsServer = await serveMetrics(config, metrics, Object.values(databases));
    servers.push(buildApp(deps));
    await servers[0]?.ready();
    await rehearse(config, databases.ingressDatabase, logger);
    await listen(servers[0], 'HELIOGRAPH_API_PORT', { host: config.api.host, port: config.api.port });
    if (config.api.httpsPort >= 0) {
      const secure = buildApp(deps, await readTlsFiles(config));
      servers.push(secure);
      await listen(secure, 'HELIOGRAPH_HTTPS_PORT', { host: config.api.host, port: config.api.httpsPort });
    }
    if (config.portal.operatorListen !== '') {
      const operators = buildApp({ ...deps, isOperatorListener: true });
      servers.push(operators);
      const address = hostAndPort(config.portal.operatorListen);
      await listen(operators, 'HELIOGRAPH_PORTAL_OPERATOR_LISTEN', address);
    }
    void warnAtStart(config, databases, logger);
    await stop.requested;
    logger.info('api stops');
    await sleep(config.api.drainNoticeMs);
  } finally {
    stop.release();
    await closeServers(servers, config.api.drainTimeoutMs, logger);
    await metricsServer?.close();
    await closeConnections(Object.values(databases));
    for (const store of Object.values(stores)) store.close();
  }
}

function hostAndPort(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':');
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(address.slice(at + 1)) };
}

async function warnAtStart(
  config: Config,
  { database, portalDatabase }: ReturnType<typeof openDatabases>,
  logger: Logger,
): Promise<void> {
  const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
  await Promise.all([
    announceSetUp(config, portalDatabase, logger),
    reportUnreadableSecrets({ database: portalDatabase, secretBox }, logger),
    warnWhenNotDurable(database, logger),
    warnOfClock(database, logger).catch(() => undefined),
  ]);
}

/** Upstream waits for it no longer than this. */
const REHEARSE_WITHIN_MS = 2_000;

async function rehearse(config: Config, database: DatabasePool, logger: Logger): Promise<void> {
  try {
    const late = sleep(REHEARSE_WITHIN_MS, undefined, { ref: false });
    await Promise.race([rehearseIngress(config, database), late]);
    // Opens the connection for notifications too; to look for bodies once more does no harm.
    database.notify('heliograph_inbox');
  } catch (error) {
    logger.debug({ err: error }, 'the rehearsal failed: the first webhooks are slower');
  }
}

/** Connections for each kind of work, so that none waits for another's. */
function openDatabases({ database }: Config) {
  const open = (name: string, max: number, options: Partial<DatabaseOptions> = {}) =>
    openDatabase({ ...database, poolMax: max, applicationName: `heliograph-${name}`, ...options });
  return {
    database: open('api', database.poolMax, { timeouts: REQUEST_TIMEOUTS }),
    ingressDatabase: open('ingress', INGRESS_POOL_MAX, { poolMin: 1, timeouts: INGRESS_TIMEOUTS }),
    lookupDatabase: open('lookup', LOOKUP_POOL_MAX, { timeouts: LOOKUP_TIMEOUTS }),
    portalDatabase: open('portal', PORTAL_POOL_MAX, { timeouts: REQUEST_TIMEOUTS }),
    operatorDatabase: open('operators', OPERATOR_POOL_MAX, { timeouts: REQUEST_TIMEOUTS }),
    limitsDatabase: open('limits', LIMITS_POOL_MAX, { durable: false }),
  };
}

function openObjectStores({ objectStore }: Config) {
  const open = () => openObjectStore(objectStore);
  return { objectStore: open(), uploadStore: open(), exportStore: open(), probeStore: open() };
}

async function listen(
  server: FastifyInstance | undefined,
  setting: string,
  address: { host: string; port: number },
): Promise<void> {
  const listenTextResolver = (url: string) => `api listens at ${url}`;
  await openedPort(setting, address, async () => await server?.listen({ ...address, listenTextResolver }));
}

/** For Prometheus, at their own port: what the public port serves is for everybody. */
async function serveMetrics(
  config: Config,
  { registry }: ApiMetrics,
  databases: readonly DatabasePool[],
): Promise<MetricsServer> {
  const { api } = config;
  const makeScrape = () => {
    watchProcess(registry);
    watchPools(registry, databases);
    watchCertificates(registry, certificateFiles(config));
    return scrapeOf(registry);
  };
  const setting = 'HELIOGRAPH_API_METRICS_PORT';
  return await startMetricsServer({ setting, host: api.host, port: api.metricsPort, makeScrape });
}

async function readTlsFiles(config: Config): Promise<{ cert: Buffer; key: Buffer }> {
  const [cert, key] = await Promise.all([readFile(config.api.tlsCertFile), readFile(config.api.tlsKeyFile)]);
  return { cert, key };
}

/** More signals change nothing: Ctrl-C reaches a process from terminal and parent alike. */
function stopSignal() {
  const controller = new AbortController();
  const onSignal = () => controller.abort();
  const release = () => {
    process.off('SIGTERM', onSignal);
    process.off('SIGINT', onSignal);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  const requested = new Promise<void>((resolve) => {
    controller.signal.addEventListener('abort', () => resolve());
  });
  return { signal: controller.signal, requested, release };
}

async function closeServers(
  servers: readonly FastifyInstance[],
  timeoutMs: number,
  logger: Logger,
): Promise<void> {
  const closed = Promise.all(servers.map((server) => server.close()));
  const isClosed = await Promise.race([closed.then(() => true), sleep(timeoutMs, false, { ref: false })]);
  if (isClosed) return;
  logger.warn('requests were still in progress and are aborted');
  for (const server of servers) server.server.closeAllConnections();
}

async function closeConnections(databases: readonly DatabasePool[]): Promise<void> {
  await Promise.all(databases.map((database) => database.destroy()));
}
