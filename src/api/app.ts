import fastify, { type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { policyDefaults } from '../features/accounts/tenant-policies.ts';
import { optionRulesOf } from '../features/endpoints/endpoint-options.ts';
import type { TestEventTools } from '../features/endpoints/test-event.ts';
import { LOOKUPS_PER_MINUTE } from '../features/endpoints/url-check.ts';
import { makeMediaUrls } from '../features/messages/media/media-urls.ts';
import { createOutcomeWaiter } from '../features/messages/send/outcome-waiter.ts';
import { makeTemplateCategories } from '../features/messages/send/template-categories.ts';
import type { KeepAtOnce } from '../ingest/intake/store-bodies.ts';
import { requireUp } from '../ops/health/questions.ts';
import type { Config } from '../platform/config/config.ts';
import { makeSecretBox, parseEncryptionKeys } from '../platform/crypto/secret-box.ts';
import type { ObjectStore } from '../platform/object-store/object-store.ts';
import type { Database } from '../platform/postgres/database.ts';
import { openTemporalConnection, type TemporalConnection } from '../platform/temporal/client-connection.ts';
import { taskQueues } from '../platform/temporal/workflow-options.ts';
import { makeTaskStart } from '../platform/temporal/workflow-starter.ts';
import { type ApiMetrics, makeApiMetrics } from './api-metrics.ts';
import { makeStreamPlaces, type StreamLimits } from './deliveries/event-stream-places.ts';
import { makeEventWatches } from './deliveries/event-watch.ts';
import { externalRoutes } from './external/external-routes.ts';
import { makePageCursors } from './external/page.ts';
import { makeUpstreamCalls } from './external/upstream-calls.ts';
import { facadeRoutes } from './graph/facade-routes.ts';
import { checkTemporal, createReadiness, healthRoutes, type WorkerSaid } from './health/health-routes.ts';
import { upstreamWebhookRoutes } from './inbound/upstream-webhook.ts';
import { receivedMediaRoutes } from './messages/received-media/received-media.ts';
import { makeUploadSlots } from './messages/uploads/upload-slots.ts';
import { addOpenApiDocuments } from './openapi/openapi-document.ts';
import { pageRoutes } from './pages/page-routes.ts';
import { addErrorHandling } from './plugins/errors.ts';
import { noteRefusals } from './plugins/refusals.ts';
import {
  addBaseHeaders,
  addRequestMetrics,
  closeConnectionsWhileDraining,
  noticeUntrustedProxy,
} from './plugins/request-hooks.ts';
import { serializerCompiler } from './plugins/serialization.ts';
import { readTextBodies } from './plugins/text-bodies.ts';
import { validatorCompiler } from './plugins/validation.ts';
import type { ConsolePages } from './portal/portal-app.ts';
import { portalRoutes } from './portal/portal-routes.ts';
import { platformRoutes } from './provisioning/platform-routes.ts';
import { createRequestLimits } from './rate-limits/request-limits.ts';
import { errorSender, serverOptions, type TlsFiles } from './server-options.ts';
import { setupRoutes } from './setup/setup-routes.ts';
import { limitConnections } from './shares/client-shares.ts';
import { type ConnectionShares, shareConnections } from './shares/connection-shares.ts';
import { EXPORT_LIMITS, shareDownloads } from './shares/download-shares.ts';

/** Of the portal's connections, the part of a tenant, of an operator, and of all together who are not signed in. */
const PORTAL_SHARE = 2;

/** Of the connections of the External API, the part of a tenant. */
const shareOf = (poolMax: number) => Math.max(1, Math.floor(poolMax * 0.4));

export type ApiDependencies = {
  config: Config;
  database: Database;
  /** No kind of work holds up another's connections; unless given, they are those of `database`, and for operators those of the portal. */
  ingressDatabase?: Database;
  lookupDatabase?: Database;
  portalDatabase?: Database;
  operatorDatabase?: Database;
  limitsDatabase?: Database;
  /** Downloads can take all connections of received files, so the others have their own, unless given. */
  objectStore: ObjectStore;
  uploadStore?: ObjectStore;
  exportStore?: ObjectStore;
  probeStore?: ObjectStore;
  logger: Logger;
  metrics?: ApiMetrics;
  /** Given by the worker of the same process. */
  keepAtOnce?: KeepAtOnce;
  /** Of the worker of the same process: null until there is one. */
  workerHealth?: () => Promise<WorkerSaid | null>;
  temporal?: TemporalConnection;
  /** Starts the workflow of a test event; without it the worker does, later. */
  startDelivery?: TestEventTools['startDelivery'];
  /** Shown to operators; without secrets. */
  settings?: Readonly<Record<string, string>>;
  consolePages?: ConsolePages | undefined;
  docsFolder?: string;
  isDraining?: () => boolean;
  /** It serves the separate port of operators' pages. */
  isOperatorListener?: boolean;
  streamLimits?: StreamLimits;
  /** The clock, milliseconds since 1970; for tests. */
  now?: () => number;
};

/** Does not listen yet; with `tls` it speaks https. */
export function buildApp(deps: ApiDependencies, tls?: TlsFiles): FastifyInstance {
  const { config, database, ingressDatabase = database, lookupDatabase = database, objectStore } = deps;
  const { probeStore = objectStore, workerHealth } = deps;
  const { metrics = makeApiMetrics() } = deps;
  const app = openServer({ ...deps, metrics }, tls);
  const { isDraining = () => false, now = Date.now } = deps;
  noticeUntrustedProxy(app, metrics, now);
  const lookup = { database: lookupDatabase };
  const readiness = createReadiness({
    checks: { database: () => requireUp(['database'], lookup), schema: () => requireUp(['schema'], lookup) },
    // Without it media waits; taking the ingress out of service would not help.
    optionalChecks: {
      objectStore: () => requireUp(['objectStore'], { objectStore: probeStore }),
      clock: () => requireUp(['clock'], lookup),
      ...(workerHealth !== undefined && { temporal: () => checkTemporal(workerHealth) }),
    },
    isDraining,
    now,
  });
  app.register(healthRoutes, { readiness });
  app.register(pageRoutes, { config, docsFolder: deps.docsFolder });
  const { keepAtOnce } = deps;
  const direct = keepAtOnce === undefined ? {} : { keepAtOnce };
  app.register(upstreamWebhookRoutes, { config, database: ingressDatabase, ...direct });
  const mediaUrls = mediaUrlsOf(config, lookupDatabase);
  app.register(receivedMediaRoutes({ database: lookupDatabase, objectStore, mediaUrls }));
  registerAccountRoutes(app, deps);
  return app;
}

function openServer(deps: ApiDependencies & { metrics: ApiMetrics }, tls?: TlsFiles): FastifyInstance {
  const { config, logger, metrics, isDraining = () => false } = deps;
  const { publicUrl } = config.api;
  const app = fastify(serverOptions(config, logger, tls));
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  closeConnectionsWhileDraining(app, isDraining);
  addRequestMetrics(app, metrics);
  addBaseHeaders(app, config);
  addErrorHandling(app, errorSender(publicUrl));
  readTextBodies(app);
  noteRefusals(app, deps.limitsDatabase ?? deps.database);
  limitConnections(app);
  addOpenApiDocuments(app, publicUrl);
  return app;
}

function mediaUrlsOf(config: Config, database: Database) {
  const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
  const { urlTtlSeconds: ttlSeconds } = config.media;
  return makeMediaUrls({ database, secretBox, publicUrl: config.api.publicUrl, ttlSeconds });
}

/** What the doors have in common, each with a share of a pool. */
function commonTools(app: FastifyInstance, deps: ApiDependencies) {
  const { config, database, lookupDatabase = database, objectStore, startDelivery = notStarted } = deps;
  const { uploadStore = objectStore, exportStore = objectStore, probeStore = objectStore } = deps;
  const { publicUrl } = config.api;
  const encryptionKeys = parseEncryptionKeys(config.encryptionKeys);
  const cursors = makePageCursors(encryptionKeys.map(({ key }) => key));
  const { urlRules, maxTimeoutMs } = optionRulesOf({ config, database });
  const limitedRules = { ...urlRules, lookupsPerMinute: LOOKUPS_PER_MINUTE };
  const rules = { secretBox: makeSecretBox(encryptionKeys), urlRules: limitedRules, maxTimeoutMs };
  const upstream = makeUpstreamCalls(config);
  const exports = shareDownloads(app, EXPORT_LIMITS);
  const uploadSlots = makeUploadSlots();
  return (shares: ConnectionShares) => ({
    database: shares.database,
    shares,
    lookupDatabase,
    accounts: { ...rules, database: shares.database },
    startDelivery,
    cursors,
    publicUrl,
    uploadStore,
    exportStore,
    exports,
    probeStore,
    upstream,
    uploadSlots,
    mediaUrls: mediaUrlsOf(config, shares.database),
  });
}

function registerAccountRoutes(app: FastifyInstance, deps: ApiDependencies): void {
  const { config, database, lookupDatabase = database, portalDatabase = database } = deps;
  const { limitsDatabase = database, settings = {}, now = Date.now } = deps;
  const toolsOn = commonTools(app, deps);
  const temporal = deps.temporal ?? ownConnection(app, config);
  const shares = shareConnections(database, shareOf(config.database.poolMax));
  const limits = createRequestLimits(limitsDatabase, config.api.rateLimits, app.log);
  const { deliveries: taskQueue } = taskQueues(config.temporal.taskQueuePrefix);
  const sends = {
    start: makeTaskStart({ database: shares.database, temporal, taskQueue, logger: deps.logger }),
    outcomes: createOutcomeWaiter(shares.database, config.database, deps.logger),
    categories: makeTemplateCategories(),
  };
  const eventStreams = {
    places: makeStreamPlaces(app, lookupDatabase, deps.streamLimits),
    watches: makeEventWatches(app.log),
  };
  const external = {
    ...toolsOn(shares),
    eventStreams,
    limits,
    sends,
    policyDefaults: policyDefaults(config),
  };
  app.register(externalRoutes, external);
  app.register(facadeRoutes, external);
  const portalShares = shareConnections(portalDatabase, PORTAL_SHARE, deps.operatorDatabase);
  const operators = {
    ...toolsOn(portalShares),
    config,
    isOperatorListener: deps.isOperatorListener ?? false,
  };
  app.register(platformRoutes, { ...operators, limitsDatabase });
  const { consolePages } = deps;
  app.register(portalRoutes, { ...operators, temporal, settings, now, consolePages });
  app.register(setupRoutes, operators);
}

function ownConnection(app: FastifyInstance, config: Config): TemporalConnection {
  const temporal = openTemporalConnection(config);
  app.addHook('onClose', async () => await temporal.close());
  return temporal;
}

async function notStarted(): Promise<never> {
  throw new Error('this process starts no workflows');
}
