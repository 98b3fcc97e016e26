import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openApiDocument } from '../../../scripts/site/openapi-document.ts';
import { operationsOf } from '../../support/openapi-document.ts';

const source = (file: string) =>
  readFileSync(new URL(`../../../clients/go/${file}`, import.meta.url), 'utf8');

test('the Go client of the platform API has a method for each operation, and an iterator for each that has a cursor', async () => {
  const code = ['platform.gen.go', 'platform.go'].map(source).join('\n');
  const methods = [...code.matchAll(/^func \(\w \*Platform\) (\w+)\(/gm)].map(([, name = '']) =>
    name.toLowerCase(),
  );
  const operations = operationsOf(await openApiDocument('platform'));
  expect(operations.length).toBeGreaterThan(20);
  for (const { operationId = '' } of operations) expect(methods).toContain(operationId.toLowerCase());
  const lists = operations.filter(({ parameters }) => parameters.some(({ name }) => name === 'cursor'));
  expect(lists.length).toBeGreaterThan(2);
  for (const { operationId = '' } of lists)
    expect(source('platform.go').toLowerCase()).toContain(
      `params ${operationId}params) iter.seq2`.toLowerCase(),
    );
});

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
