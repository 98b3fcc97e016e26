import { expect, test } from 'vitest';
import { OPERATIONS } from '../../../src/api/operations/operations.ts';
import { ALLOWED_LEVELS } from '../../../src/mcp/allowed-levels.ts';
import { inputSchemaOf } from '../../../src/mcp/input-schema.ts';
import { readToolData } from '../../../src/mcp/tool-data.ts';
import { operationTools } from '../../../src/mcp/tool-list.ts';

const idsAt = (...levels: Parameters<typeof operationTools>[0]) =>
  operationTools(levels).map(({ operation }) => operation.id);

test('without more, a tool never needs a scope that changes something', () => {
  const scopes = new Set(operationTools([]).map(({ operation }) => operation.scope));
  expect([...scopes].toSorted()).toEqual(['any', 'read', 'readEvents', 'readWebhooks']);
  // A search is a POST because of its phone numbers.
  const changing = operationTools([]).filter(({ operation }) => operation.method !== 'GET');
  expect(changing.map(({ operation }) => operation.id)).toEqual(['searchConversations', 'searchOptOuts']);
});

test('each level adds its own tools and nothing of the other', () => {
  const read = idsAt();
  const added = (level: (typeof ALLOWED_LEVELS)[number]) => idsAt(level).filter((id) => !read.includes(id));
  expect(added('send')).toEqual(['controlThread', 'sendMessage', 'markMessageRead', 'addOptOut']);
  expect(added('operate')).toHaveLength(10);
  expect(idsAt(...ALLOWED_LEVELS)).toHaveLength(read.length + 14);
});

test('nothing that shows a secret, deletes or erases is a tool', () => {
  const offered = new Set(idsAt(...ALLOWED_LEVELS));
  const kept = OPERATIONS.filter(({ id, method, scope, path }) => {
    const isSecret = /secret|signing-key|operations-url/.test(path) || id === 'createWebhookEndpoint';
    return isSecret || method === 'DELETE' || scope === 'erase' || scope === 'export';
  });
  expect(kept.length).toBeGreaterThan(8);
  expect(kept.filter(({ id }) => offered.has(id))).toEqual([]);
});

test('no tool can drop deliveries, though its operation can', () => {
  const tools = operationTools(ALLOWED_LEVELS);
  const dropping = tools.filter(({ operation }) => /"drop"/.test(JSON.stringify(operation.body ?? {})));
  expect(dropping.map(({ operation }) => operation.id)).toEqual(['enableWebhookEndpoint']);
  for (const { operation, choices } of tools) {
    expect(JSON.stringify(inputSchemaOf(operation, choices))).not.toMatch(/"drop"/);
  }
  expect(tools.filter(({ operation }) => /\/drop$/.test(operation.path))).toEqual([]);
});

test('a description is one sentence with its title, for a model that sees nothing else', () => {
  const { tools } = readToolData();
  expect(tools.length).toBeGreaterThan(25);
  for (const { title, description } of tools)
    expect(description).toMatch(new RegExp(`^${title}: [a-z\\d\`]`));
});
