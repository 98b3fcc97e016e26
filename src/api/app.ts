import fastify, { type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { TestEventTools } from '../accounts/test-event.ts';
import type { Config } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import { query } from '../database/sql.ts';
import { makePageCursors } from '../domain/page-cursor.ts';
import { makeSecretBox, parseEncryptionKeys } from '../domain/secret-box.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import { makeAddressGuard } from '../webhooks/address-guard.ts';
import { makeHostResolver } from '../webhooks/resolve-host.ts';
import { externalRoutes } from './external/external-routes.ts';
import { createOutcomeWaiter } from './external/send/outcome-waiter.ts';
import { createSendStarter } from './external/send/send-starter.ts';
import { healthRoutes } from './health/health-routes.ts';
import { checkObjectStore } from './health/object-store-check.ts';
import { createReadiness } from './health/readiness.ts';
import { upstreamWebhookRoutes } from './ingress/upstream-webhook.ts';
import { receivedMediaRoutes } from './media/received-media.ts';
import { pageRoutes } from './pages/page-routes.ts';
import { addErrorHandling } from './plugins/errors.ts';
import { addBaseHeaders } from './plugins/security-headers.ts';
import { schemaErrorFormatter, validatorCompiler } from './plugins/validation.ts';
import { serverOptions, type TlsFiles } from './server-options.ts';

export type ApiDependencies = {
  config: Config;
  database: Database;
  /** Connections of its own for upstream webhooks, so that API requests cannot hold them up; `database` unless given. */
  ingressDatabase?: Database;
  objectStore: ObjectStore;
  logger: Logger;
  /** Starts the workflow of a test event; without it the worker does, later. */
  startDelivery?: TestEventTools['startDelivery'];
  /** Whether the process is about to stop, which makes it not ready. */
  isDraining?: () => boolean;
  /** The clock, milliseconds since 1970; for tests. */
  now?: () => number;
};

/** The API server with everything it serves, not listening yet. With `tls` it speaks https. */
export function buildApp(deps: ApiDependencies, tls?: TlsFiles): FastifyInstance {
  const { config, database, ingressDatabase = database, objectStore, logger } = deps;
  const { publicUrl } = config.api;
  const app = fastify(serverOptions(config, logger, tls));
  app.setValidatorCompiler(validatorCompiler);
  app.setSchemaErrorFormatter(schemaErrorFormatter);
  addBaseHeaders(app);
  addErrorHandling(app, publicUrl);

  const readiness = createReadiness({
    checks: { database: () => query(database, 'select 1') },
    // Without it media waits; taking the ingress out of service would help nobody.
    optionalChecks: { objectStore: () => checkObjectStore(objectStore) },
    isDraining: deps.isDraining ?? (() => false),
    now: deps.now ?? Date.now,
  });
  const encryptionKeys = parseEncryptionKeys(config.encryptionKeys);
  const cursors = makePageCursors(encryptionKeys.map(({ key }) => key));
  const accounts = { database, secretBox: makeSecretBox(encryptionKeys), ...endpointRules(config) };
  const { startDelivery = notStarted } = deps;

  app.register(healthRoutes, { readiness });
  app.register(pageRoutes, { config });
  app.register(upstreamWebhookRoutes, { config, database: ingressDatabase });
  app.register(receivedMediaRoutes({ database, objectStore }));
  const sends = {
    starter: createSendStarter(config, database, logger),
    outcomes: createOutcomeWaiter(database, config.database.url),
  };
  app.register(externalRoutes, { database, accounts, startDelivery, cursors, publicUrl, sends });
  return app;
}

/** By which the sender judges endpoints too. */
function endpointRules({ webhooks }: Config) {
  const guard = makeAddressGuard({ allowCidrs: webhooks.allowCidrs });
  const urlRules = { allowHttp: webhooks.allowHttp, guard, resolve: makeHostResolver() };
  return { urlRules, maxTimeoutMs: webhooks.timeoutMs };
}

async function notStarted(): Promise<never> {
  throw new Error('this process starts no workflows');
}
