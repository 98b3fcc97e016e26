import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { OpenApiDocument } from '../test/support/openapi-document.ts';
import { generateGoClient } from './go-client/generate.ts';
import { pythonClient } from './python-client/python-client.ts';
import { openApiDocument } from './site/openapi-document.ts';

/**
 * Writes the generated parts of the clients, from the OpenAPI document of the API as it is now:
 * `node scripts/generate-client.ts [directory [language…]]`. The directory then has a folder for each language: `typescript`,
 * `python` and `go`, which needs Go. Servers are not needed.
 */

const CLIENTS = fileURLToPath(new URL('../clients', import.meta.url));

/** What the gateway and the client both do with the bytes of a connection. */
const STATUS_LINES = fileURLToPath(new URL('../src/platform/http/status-lines.ts', import.meta.url));

/** The generator works with the compiler's API in JavaScript, which TypeScript 7 no longer has. */
function giveGeneratorItsCompiler(): void {
  const compiler = import.meta.resolve('typescript-compiler-api');
  registerHooks({
    resolve: (specifier, context, next) => next(specifier === 'typescript' ? compiler : specifier, context),
  });
}

async function generateTypeScript(
  input: OpenApiDocument,
  directory: string,
  containerName: string,
): Promise<void> {
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
        operations: { strategy: 'single', containerName, methods: 'instance' },
      },
    ],
    logs: { level: 'silent', file: false },
  });
}

/** What makes the requests is the same for both APIs, and is in the client once. */
function shareRuntime(directory: string): void {
  for (const folder of ['client', 'core']) rmSync(join(directory, folder), { recursive: true });
  for (const name of ['sdk.gen.ts', 'client.gen.ts']) {
    const path = join(directory, name);
    const text = readFileSync(path, 'utf8').replaceAll(/'\.\/(client|core)\//g, `'../$1/`);
    writeFileSync(path, text);
  }
}

function generatePython(input: OpenApiDocument, directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of pythonClient(input)) writeFileSync(join(directory, name), text);
}

const [, , given, ...languages] = process.argv;
const isWanted = (language: string) => languages.length === 0 || languages.includes(language);
const folderOf = (language: string, committed: string) =>
  given === undefined ? join(CLIENTS, committed) : join(resolve(given), language);
const input = await openApiDocument();
const platform = await openApiDocument('platform');
// The same operation as `GET /me`, which clients have.
delete input.paths['/api/external/me'];
if (isWanted('python')) {
  const directory = folderOf('python', 'python/src/heliograph/generated');
  generatePython(input, directory);
  generatePython(platform, join(directory, 'platform'));
}
if (isWanted('go')) {
  const forGo = folderOf('go', 'go');
  mkdirSync(forGo, { recursive: true });
  await generateGoClient(input, platform, forGo);
}
if (isWanted('typescript')) {
  const directory = folderOf('typescript', 'typescript/src/generated');
  await generateTypeScript(input, directory, 'HeliographApi');
  copyFileSync(STATUS_LINES, join(directory, 'status-lines.ts'));
  const ofPlatform = join(directory, 'platform');
  await generateTypeScript(platform, ofPlatform, 'PlatformApi');
  shareRuntime(ofPlatform);
}
