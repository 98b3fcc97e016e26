import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildApp } from '../src/api/app.ts';
import { loadConfig } from '../src/platform/config/config.ts';
import { openObjectStore } from '../src/platform/object-store/object-store.ts';
import { openDatabase } from '../src/platform/postgres/database.ts';
import { silentLogger } from '../test/support/silent-logger.ts';

/**
 * Writes the generated part of the TypeScript client, from the OpenAPI document of the API as it is now:
 * `node scripts/generate-client.ts [directory]`. Servers are not needed.
 */

const GENERATED = fileURLToPath(new URL('../clients/typescript/src/generated', import.meta.url));

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

async function openApiDocument(): Promise<Record<string, unknown>> {
  const config = loadConfig(NOWHERE);
  const database = openDatabase({ url: config.database.url, poolMax: 1, applicationName: 'generate-client' });
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database, objectStore, logger: silentLogger });
  try {
    const response = await app.inject('/api/external/openapi.json');
    const document = response.json();
    // Everybody has an address of their own.
    delete document.servers;
    return document;
  } finally {
    await app.close();
    objectStore.close();
    await database.destroy();
  }
}

/** The generator works with the compiler's API in JavaScript, which TypeScript 7 no longer has. */
function giveGeneratorItsCompiler(): void {
  const compiler = import.meta.resolve('typescript-compiler-api');
  registerHooks({
    resolve: (specifier, context, next) => next(specifier === 'typescript' ? compiler : specifier, context),
  });
}

async function generate(directory: string): Promise<void> {
  const input = await openApiDocument();
  giveGeneratorItsCompiler();
  const { createClient } = await import('@hey-api/openapi-ts');
  await createClient({
    input,
    output: { path: directory, module: { extension: '.js' } },
    plugins: [
      { name: '@hey-api/client-fetch', throwOnError: true },
      { name: '@hey-api/typescript' },
      {
        name: '@hey-api/sdk',
        operations: { strategy: 'single', containerName: 'HeliographApi', methods: 'instance' },
      },
    ],
    logs: { level: 'silent', file: false },
  });
}

await generate(resolve(process.argv[2] ?? GENERATED));
