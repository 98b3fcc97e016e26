import fastify, { type FastifyInstance } from 'fastify';
import { onTestFinished } from 'vitest';
import { makeUpstreamCalls } from '../../../../src/api/external/upstream-calls.ts';
import { schemaErrorFormatter, validatorCompiler } from '../../../../src/api/plugins/validation.ts';
import { accessPages } from '../../../../src/api/portal/access/access-pages.ts';
import { requirePortalAccess } from '../../../../src/api/portal/access/portal-access.ts';
import { approvalPages } from '../../../../src/api/portal/approvals/approval-pages.ts';
import { auditPages } from '../../../../src/api/portal/audit/audit-pages.ts';
import { keyPages } from '../../../../src/api/portal/keys/key-pages.ts';
import type { PortalApp, PortalContext } from '../../../../src/api/portal/portal-app.ts';
import { serverOptions } from '../../../../src/api/server-options.ts';
import { openTemporalConnection } from '../../../../src/commands/temporal-connection.ts';
import type { Database } from '../../../../src/database/database.ts';
import { makePageCursors } from '../../../../src/domain/page-cursor.ts';
import { openObjectStore } from '../../../../src/storage/object-store.ts';
import { makeAddressGuard } from '../../../../src/webhooks/address-guard.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { seedFixtureAccounts, testSecretBox } from '../../../support/test-accounts.ts';
import { createTestDatabase } from '../../../support/test-database.ts';
import { PUBLIC_URL, testConfig } from '../../api/api-harness.ts';

/** The pages about keys, approvals and the audit log behind the access checks of the portal. */
export async function startKeyPages(): Promise<{ app: FastifyInstance; database: Database }> {
  const { database, close } = await createTestDatabase();
  await seedFixtureAccounts(database);
  const config = testConfig();
  const objectStore = openObjectStore(config.objectStore);
  const urlRules = { allowHttp: true, guard: makeAddressGuard({ allowCidrs: [] }), resolve: async () => [] };
  const context: PortalContext = {
    ...{ config, database, objectStore, publicUrl: PUBLIC_URL, now: Date.now },
    accounts: { database, secretBox: testSecretBox, urlRules, maxTimeoutMs: 15_000 },
    startDelivery: async () => '',
    cursors: makePageCursors([Buffer.alloc(32, 1)]),
    temporal: openTemporalConnection(config),
    upstream: makeUpstreamCalls(config),
    settings: {},
  };
  const app = fastify(serverOptions(config, silentLogger));
  app.setValidatorCompiler(validatorCompiler);
  app.setSchemaErrorFormatter(schemaErrorFormatter);
  app.register(async (scope: PortalApp) => {
    accessPages(scope, context, await requirePortalAccess(scope, context));
    for (const pages of [keyPages, approvalPages, auditPages]) pages(scope, context);
  });
  await app.ready();
  onTestFinished(async () => {
    await app.close();
    objectStore.close();
    await close();
  });
  return { app, database };
}
