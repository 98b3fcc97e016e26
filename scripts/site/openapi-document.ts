import { buildApp } from '../../src/api/app.ts';
import { loadConfig } from '../../src/platform/config/config.ts';
import { openObjectStore } from '../../src/platform/object-store/object-store.ts';
import { openDatabase } from '../../src/platform/postgres/database.ts';
import type { OpenApiDocument } from '../../test/support/openapi-document.ts';
import { silentLogger } from '../../test/support/silent-logger.ts';

/** Where nothing is: the document is made without asking anybody. */
const NOWHERE = {
  HELIOGRAPH_MODE: 'development',
  HELIOGRAPH_PUBLIC_URL: 'https://gateway.example',
  HELIOGRAPH_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
  HELIOGRAPH_OBJECT_STORE_URL: 'http://127.0.0.1:1',
  HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: 'none',
  HELIOGRAPH_OBJECT_STORE_SECRET_KEY: 'none',
  HELIOGRAPH_UPSTREAM_APP_SECRETS: 'none',
  HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'none',
  HELIOGRAPH_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
};

/** The OpenAPI document of an API as it is now, without the address of an installation. Servers are not needed. */
export async function openApiDocument(api: 'external' | 'platform' = 'external'): Promise<OpenApiDocument> {
  const config = loadConfig(NOWHERE);
  const database = openDatabase({
    url: config.database.url,
    poolMax: 1,
    applicationName: 'openapi-document',
  });
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database, objectStore, logger: silentLogger });
  try {
    const response = await app.inject(`/api/${api}/openapi.json`);
    const document = response.json<OpenApiDocument>();
    // Everybody has an address of their own.
    delete document.servers;
    return document;
  } finally {
    await app.close();
    objectStore.close();
    await database.destroy();
  }
}
