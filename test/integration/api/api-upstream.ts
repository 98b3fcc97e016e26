import { startUpstreamServer } from '../../../dev/sandbox/upstream-server.ts';
import type { ApiDependencies } from '../../../src/api/app.ts';
import { ACCESS_TOKEN } from '../../../src/features/accounts/access-tokens.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { OTHER_WABA, testConfig, WABA } from './api-harness.ts';

/** The stand-in platform for an API under test, and what lets the API use it. */
export async function startUpstream() {
  const sandbox = await startUpstreamServer({
    host: '127.0.0.1',
    port: 0,
    appSecret: 'test-app-secret',
    verifyToken: 'test-verify-token',
    ingressUrl: 'http://127.0.0.1:9',
  });
  return {
    overrides: async (): Promise<Partial<ApiDependencies>> => ({
      config: testConfig({
        HELIOGRAPH_UPSTREAM_GRAPH_URL: sandbox.url,
        // The key of testSecretBox.
        HELIOGRAPH_ENCRYPTION_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
      }),
    }),
    addTokens: async (database: Database): Promise<void> => {
      for (const wabaId of [WABA, OTHER_WABA]) {
        const sealed = testSecretBox.seal('EAAG-test-token', ACCESS_TOKEN.place(wabaId));
        const set = 'update wabas set access_token_sealed = :sealed where waba_id = :wabaId';
        await execute(database, set, { sealed, wabaId });
      }
    },
    close: () => sandbox.close(),
  };
}
