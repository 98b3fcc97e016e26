import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { OpenApiDocument } from '../test/support/openapi-document.ts';
import { pythonClient } from './python-client/python-client.ts';
import { openApiDocument } from './site/openapi-document.ts';

/**
 * Writes the generated parts of the TypeScript and the Python client, from the OpenAPI document of the API as it is now:
 * `node scripts/generate-client.ts [directory]`, which then has `typescript` and `python`. Servers are not needed.
 */

const CLIENTS = fileURLToPath(new URL('../clients', import.meta.url));

/** The generator works with the compiler's API in JavaScript, which TypeScript 7 no longer has. */
function giveGeneratorItsCompiler(): void {
  const compiler = import.meta.resolve('typescript-compiler-api');
  registerHooks({
    resolve: (specifier, context, next) => next(specifier === 'typescript' ? compiler : specifier, context),
  });
}

async function generateTypeScript(input: OpenApiDocument, directory: string): Promise<void> {
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

function generatePython(input: OpenApiDocument, directory: string): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of pythonClient(input)) writeFileSync(join(directory, name), text);
}

const [, , given] = process.argv;
const folders =
  given === undefined
    ? [join(CLIENTS, 'typescript/src/generated'), join(CLIENTS, 'python/src/heliograph/generated')]
    : [join(resolve(given), 'typescript'), join(resolve(given), 'python')];
const [forTypeScript = '', forPython = ''] = folders;
const input = await openApiDocument();
generatePython(input, forPython);
await generateTypeScript(input, forTypeScript);
