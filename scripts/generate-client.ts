import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openApiDocument } from './site/openapi-document.ts';

/**
 * Writes the generated part of the TypeScript client, from the OpenAPI document of the API as it is now:
 * `node scripts/generate-client.ts [directory]`. Servers are not needed.
 */

const GENERATED = fileURLToPath(new URL('../clients/typescript/src/generated', import.meta.url));

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
