import fastify, { type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import { query } from '../database/sql.ts';
import { makePageCursors } from '../domain/page-cursor.ts';
import { parseEncryptionKeys } from '../domain/secret-box.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import { externalRoutes } from './external/external-routes.ts';
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
  const cursors = makePageCursors(parseEncryptionKeys(config.encryptionKeys).map(({ key }) => key));

  app.register(healthRoutes, { readiness });
  app.register(pageRoutes, { config });
  app.register(upstreamWebhookRoutes, { config, database: ingressDatabase });
  app.register(receivedMediaRoutes({ database, objectStore }));
  app.register(externalRoutes, { database, cursors, publicUrl });
  return app;
}
