import { Validator } from '@seriousme/openapi-schema-validator';
import { beforeAll, describe, expect, test } from 'vitest';
import { ERROR_CODES } from '../../../src/api/errors/error-codes.ts';
import { KNOWN_FIELDS } from '../../../src/platform/upstream-fields.ts';
import {
  type DocumentedOperation,
  followed,
  type Json,
  type OpenApiDocument,
  operationsOf,
  validatorOf,
} from '../../support/openapi-document.ts';
import { apiOfFile, PUBLIC_URL } from './api-harness.ts';

const PATH = '/api/external/openapi.json';

const api = apiOfFile();
let document: OpenApiDocument;
let operations: DocumentedOperation[];

beforeAll(async () => {
  document = (await api.app.inject(PATH)).json();
  operations = operationsOf(document);
});

const named = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;

const isSuccess = (status: string) => status.startsWith('2');

describe('the document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(document);
    expect([valid, errors]).toEqual([true, undefined]);
    expect(validator.version).toBe('3.1');
  });

  test('describes exactly the routes of the External API that are registered', () => {
    const registered = api.routes
      .filter(({ url }) => url.startsWith('/api/external/') || url === '/me')
      .flatMap(({ method, url }) => [method].flat().map((one) => `${one} ${url}`))
      .filter((route) => !route.startsWith('HEAD '))
      .map((route) => route.replaceAll(/:(\w+)/g, '{$1}'));
    expect(new Set(operations.map(named))).toEqual(new Set(registered));
  });

  test('has no reference that leads nowhere, and no component that nothing refers to', () => {
    const references = new Set(
      [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, to]) => to),
    );
    for (const reference of references) expect(followed(document, { $ref: reference ?? '' })).toBeDefined();
    const names = Object.entries(document.components)
      .filter(([kind]) => kind !== 'securitySchemes')
      .flatMap(([kind, all]) => Object.keys(all).map((name) => `#/components/${kind}/${name}`));
    expect(names.filter((name) => !references.has(name))).toEqual([]);
  });

  test('names what tenants meet as components', () => {
    expect(Object.keys(document.components.schemas ?? {})).toEqual(
      expect.arrayContaining(['Error', 'Message', 'Conversation', 'Event', 'WebhookEndpoint', 'Replay']),
    );
    expect(document.components.securitySchemes).toMatchObject({ apiKey: { type: 'http', scheme: 'bearer' } });
  });

  test('is there for anybody, may be kept for a while, and is not sent twice to who has it', async () => {
    const first = await api.app.inject(PATH);
    expect(first.statusCode).toBe(200);
    expect(first.headers['cache-control']).toBe('public, max-age=300');
    const { etag } = first.headers;
    const again = await api.app.inject({ url: PATH, headers: { 'if-none-match': `W/"x", ${etag}` } });
    expect([again.statusCode, again.body]).toEqual([304, '']);
    expect(JSON.parse(first.body).servers).toEqual([{ url: PUBLIC_URL }]);
  });
});

describe('every operation', () => {
  test('has an operationId of its own, a summary, a description and a tag', () => {
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = new Set(document.tags.map(({ name }) => name));
    for (const operation of operations) {
      const { operationId = '', summary = '', description = '' } = operation;
      expect([named(operation), operationId]).toEqual([
        named(operation),
        expect.stringMatching(/^[a-z]\w+$/),
      ]);
      expect([named(operation), summary]).toEqual([named(operation), expect.stringMatching(/^.{5,80}[^.]$/)]);
      expect([named(operation), description.length > 10]).toEqual([named(operation), true]);
      expect([named(operation), operation.tags?.every((tag) => tags.has(tag))]).toEqual([
        named(operation),
        true,
      ]);
      expect(operation.tags).toHaveLength(1);
    }
  });

  test('has an example of its body and of each answer, and each follows its schema', () => {
    const problems: string[] = [];
    for (const operation of operations) {
      const { requestBody, responses } = operation;
      const parts = Object.entries(responses).flatMap(([status, { content }]) =>
        Object.entries(content ?? {}).map(([type, media]) => ({ what: `${status} ${type}`, media })),
      );
      if (requestBody !== undefined) {
        for (const [type, media] of Object.entries(requestBody.content)) parts.push({ what: type, media });
      }
      for (const { what, media } of parts) {
        const examples = Object.entries(media.examples ?? {});
        if (examples.length === 0) problems.push(`${named(operation)} ${what}: no example`);
        const check = validatorOf(document, media.schema);
        for (const [name, { value }] of examples) {
          const wrong = check(value);
          if (wrong.length > 0) problems.push(`${named(operation)} ${what} ${name}: ${wrong.join('; ')}`);
        }
      }
      if (!Object.keys(responses).some(isSuccess)) problems.push(`${named(operation)}: no success`);
    }
    expect(problems).toEqual([]);
  });

  test('says what each of its parameters means, with an example that follows its schema', () => {
    const problems: string[] = [];
    for (const operation of operations) {
      for (const { name, description, example, schema } of operation.parameters) {
        if (typeof description !== 'string') problems.push(`${named(operation)} ${name}: no description`);
        const wrong = validatorOf(document, schema)(example);
        if (wrong.length > 0) problems.push(`${named(operation)} ${name}: ${wrong.join('; ')}`);
      }
    }
    expect(problems).toEqual([]);
  });

  test('says which errors it answers with, in the one shape, with the request id', () => {
    for (const operation of operations) {
      const { security = [], responses, requestBody, path, method } = operation;
      const expected = ['500', '503'];
      if (security.length > 0) expected.push('400', '401', '429');
      if (path.includes('{')) expected.push('404');
      if (requestBody !== undefined) expected.push('413', '415');
      const statuses = Object.keys(responses);
      expect([named(operation), expected.filter((status) => !statuses.includes(status))]).toEqual([
        named(operation),
        [],
      ]);
      for (const [status, { content, headers }] of Object.entries(responses)) {
        expect([named(operation), status, Object.keys(headers ?? {})]).toEqual([
          named(operation),
          status,
          expect.arrayContaining(['X-Request-Id']),
        ]);
        if (isSuccess(status)) continue;
        expect(content?.['application/json']?.schema).toEqual({ $ref: '#/components/schemas/Error' });
        for (const code of Object.keys(content?.['application/json']?.examples ?? {})) {
          expect([method, code, String(ERROR_CODES[code as 'not_found'].status)]).toEqual([
            method,
            code,
            status,
          ]);
        }
      }
    }
    expect(followed<Json>(document, { $ref: '#/components/schemas/ErrorCode' }).enum).toEqual(
      Object.keys(ERROR_CODES),
    );
  });

  test('asks for a key unless it is public, and says which scopes will do', () => {
    const open = operations.filter(({ security }) => security?.length === 0).map(named);
    expect(open.sort()).toEqual([`GET ${PATH}`, 'GET /api/external/test']);
    for (const operation of operations.filter(({ security }) => security?.length !== 0)) {
      expect(operation.security).toEqual([{ apiKey: [] }]);
      expect(operation.description).toMatch(/Scope: (any|`\w+`( or `\w+`)?)\.$/);
    }
  });
});

describe('errors', () => {
  test('are not changed by what the document says about them: each has its status and shape', async () => {
    const check = validatorOf(document, { $ref: '#/components/schemas/Error' });
    const headers = { authorization: 'Bearer nonsense' };
    for (const { method, path } of operations.filter(({ security }) => security?.length !== 0)) {
      const url = path.replaceAll(/\{\w+\}/g, '1');
      const response = await api.app.inject({ method: method as 'GET', url, headers });
      expect([path, response.statusCode, check(response.json())]).toEqual([path, 401, []]);
    }
  });
});

describe('webhooks', () => {
  test('each of the six, those on request, and each known field, has a body, an example that follows it, and the signed headers', () => {
    const webhooks = operationsOf(document, 'webhooks');
    expect(webhooks.map(({ path }) => path)).toEqual([
      'message',
      'status',
      'payment',
      'order',
      'media.ready',
      'test',
      'window.closing',
      'preference',
      'message.batch',
      ...KNOWN_FIELDS.map((field) => `upstream.${field}`),
    ]);
    for (const { path, requestBody, parameters, summary } of webhooks) {
      const media = requestBody?.content['application/json'];
      if (media === undefined) throw new Error(`${path} has no body`);
      const example = media.examples?.example?.value;
      expect([path, validatorOf(document, media.schema)(example)]).toEqual([path, []]);
      expect(example).toMatchObject({ eventType: path });
      expect(summary).toBeDefined();
      expect(parameters.map(({ name }) => name)).toEqual(
        expect.arrayContaining([
          'webhook-id',
          'webhook-timestamp',
          'webhook-signature',
          'X-Service-Signature',
        ]),
      );
    }
  });
});
