import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openApiDocument } from '../../../scripts/site/openapi-document.ts';
import { operationsOf } from '../../support/openapi-document.ts';

const source = (file: string) =>
  readFileSync(new URL(`../../../clients/go/${file}`, import.meta.url), 'utf8');

test('the Go client has a method for each operation, and an iterator for each that has a cursor', async () => {
  const code = ['api.gen.go', 'messages.go', 'media.go', 'stream.go'].map(source).join('\n');
  const methods = [...code.matchAll(/^func \(c \*Client\) (\w+)\(/gm)].map(([, name = '']) =>
    name.toLowerCase(),
  );
  const operations = operationsOf(await openApiDocument()).map(({ operationId = '' }) => operationId);
  expect(operations.length).toBeGreaterThan(50);
  // The same as getAccountIdentity, below another path, in no client.
  const wanted = operations.filter((id) => id !== 'getAccountIdentityUnderPrefix');
  for (const id of wanted) expect(methods).toContain(id.toLowerCase());
  const structs = [...code.matchAll(/^type (\w+) struct \{\n(.*?)^\}/gms)];
  const withCursor = structs.filter(([, , text = '']) => /^\tCursor +string .*json:"cursor/m.test(text));
  expect(withCursor.length).toBeGreaterThanOrEqual(9);
  for (const [, name = ''] of withCursor)
    expect(source('paging.go')).toMatch(new RegExp(`func \\(c \\*Client\\) All.*${name}\\)`));
});
