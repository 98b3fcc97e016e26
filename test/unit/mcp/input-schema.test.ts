import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { ALLOWED_LEVELS } from '../../../src/mcp/allowed-levels.ts';
import { inputSchemaOf } from '../../../src/mcp/input-schema.ts';
import { operationTools } from '../../../src/mcp/tool-list.ts';

const TOOLS = operationTools(ALLOWED_LEVELS).map(({ operation }) => ({
  id: operation.id,
  operation,
  schema: inputSchemaOf(operation),
}));

/** The whole list of tools is in the context of a model for as long as the conversation goes on. */
const MAX_SCHEMA_CHARS = 10_000;

const ajv = new Ajv2020({ strict: false, formats: { 'date-time': true } });

/** Members that every path needs. */
function pathMembers(path: string): Record<string, string> {
  return Object.fromEntries([...path.matchAll(/:(\w+)/g)].map(([, name = '']) => [name, '1']));
}

describe.each(TOOLS)('the arguments of $id', ({ operation, schema }) => {
  test('are one object of moderate size, as every host takes it', () => {
    expect(schema.type).toBe('object');
    expect(Object.keys(schema)).not.toContain('anyOf');
    expect(JSON.stringify(schema).length).toBeLessThan(MAX_SCHEMA_CHARS);
  });

  test('hold every example that the API gives', () => {
    const isValid = ajv.compile(schema);
    for (const example of Object.values(operation.requests ?? {})) {
      const args = { ...pathMembers(operation.path), ...(example as object) };
      expect(isValid(args), JSON.stringify([args, isValid.errors])).toBe(true);
    }
  });

  test('have no name twice in path, query and body', () => {
    const names = [operation.params, operation.query, operation.body].flatMap((part) =>
      Object.keys((part as { properties?: object } | undefined)?.properties ?? {}),
    );
    expect(new Set(names).size).toBe(names.length);
  });
});

test('what a message must have, and the types that it can have, are known to a model', () => {
  const schema = TOOLS.find(({ id }) => id === 'sendMessage')?.schema;
  expect(schema).toMatchObject({
    required: ['phoneNumberId'],
    properties: {
      type: { type: 'string', enum: expect.arrayContaining(['text', 'template', 'interactive']) },
      text: { type: 'object', required: ['body'] },
      idempotencyKey: { type: 'string', description: expect.stringContaining('repetition') },
    },
  });
});
