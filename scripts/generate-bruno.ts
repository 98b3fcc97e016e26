import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brunoCollection } from './site/bruno-collection.ts';
import { openApiDocument } from './site/openapi-document.ts';

/**
 * Writes the Bruno collection from the OpenAPI document of the API as it is now: `npm run bruno -- [directory]`.
 * Servers are not needed.
 */

const COMMITTED = fileURLToPath(new URL('../clients/bruno/heliograph', import.meta.url));

const directory = resolve(process.argv[2] ?? COMMITTED);
const files = brunoCollection(await openApiDocument());
rmSync(directory, { recursive: true, force: true });
for (const [path, content] of files) {
  const file = join(directory, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}
