import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { brunoCollection } from '../../../scripts/site/bruno-collection.ts';
import { openApiDocument } from '../../../scripts/site/openapi-document.ts';
import { operationsOf } from '../../support/openapi-document.ts';

const COMMITTED = fileURLToPath(new URL('../../../clients/bruno/heliograph', import.meta.url));

test('the Bruno collection is what the API of today gives, with each operation; otherwise run npm run bruno', async () => {
  const document = await openApiDocument();
  const files = brunoCollection(document);
  const names = readdirSync(COMMITTED, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(COMMITTED, join(parentPath, name)));
  expect(names.toSorted()).toEqual([...files.keys()].toSorted());
  for (const [name, content] of files) {
    expect(readFileSync(join(COMMITTED, name), 'utf8'), name).toBe(content.toString('utf8'));
  }
  const requests = [...files].flatMap(([, content]) =>
    [
      ...content
        .toString('utf8')
        .matchAll(/^(get|post|put|patch|delete) \{\n {2}url: \{\{baseUrl\}\}(\S+)/gm),
    ].map(([, method, path]) => `${method} ${path}`),
  );
  const operations = operationsOf(document).map(
    ({ method, path }) => `${method.toLowerCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
  );
  expect(requests.toSorted()).toEqual(operations.toSorted());
});
