import { Validator } from '@seriousme/openapi-schema-validator';
import { beforeAll, expect, test } from 'vitest';
import { PLATFORM_OPERATIONS } from '../../../../src/api/provisioning/operations.ts';
import {
  followed,
  type OpenApiDocument,
  operationsOf,
  validatorOf,
} from '../../../support/openapi-document.ts';
import { apiOfFile, testConfig } from '../api-harness.ts';
import { pathOf } from '../documented-requests.ts';
import { fresh, platformClient } from './platform-client.ts';

const PRODUCT = 'https://crm.example';
const api = apiOfFile(async () => ({
  config: testConfig({ HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: PRODUCT }),
}));

let document: OpenApiDocument;

beforeAll(async () => {
  document = (await api.app.inject('/api/platform/openapi.json')).json();
});

const named = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;

test('the document is valid OpenAPI 3.1, has the operations of the platform API and no others, and nothing that it does not use', async () => {
  const { valid, errors } = await new Validator().validate(document);
  expect([valid, errors]).toEqual([true, undefined]);
  const described = PLATFORM_OPERATIONS.map(
    ({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`,
  );
  expect(operationsOf(document).map(named).sort()).toEqual(
    [...described, 'GET /api/platform/openapi.json'].sort(),
  );
  const references = new Set(
    [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, to = '']) => to),
  );
  for (const reference of references) expect(followed(document, { $ref: reference })).toBeDefined();
  const names = Object.entries(document.components)
    .filter(([kind]) => kind !== 'securitySchemes')
    .flatMap(([kind, all]) => Object.keys(all).map((name) => `#/components/${kind}/${name}`));
  expect(names.filter((name) => !references.has(name))).toEqual([]);
  expect(document.components.securitySchemes).toMatchObject({
    apiKey: { bearerFormat: 'hp_ and 64 hex digits' },
  });
});

test('each operation has examples that follow its schemas, and says which scope it needs', () => {
  const problems: string[] = [];
  for (const operation of operationsOf(document)) {
    const { requestBody, responses, description = '', security = [] } = operation;
    const parts = [requestBody, ...Object.values(responses)].flatMap((one) =>
      Object.values(one?.content ?? {}),
    );
    for (const { schema, examples = {} } of parts) {
      const check = validatorOf(document, schema);
      if (Object.keys(examples).length === 0) problems.push(`${named(operation)}: no example`);
      for (const { value } of Object.values(examples))
        problems.push(...check(value).map((why) => `${named(operation)}: ${why}`));
    }
    if (security.length > 0 && !/Scope: /.test(description)) problems.push(`${named(operation)}: no scope`);
  }
  expect(problems).toEqual([]);
});

test('what the API answers follows the document', async () => {
  const ask = await platformClient(api);
  const { name, wabaId } = fresh();
  const bodies: Record<string, object> = {
    putTenant: { businessName: 'Acme' },
    updateTenant: { state: 'active' },
    putTenantPolicy: { mediaDays: 90 },
    putUsageAlert: { metric: 'billable', period: 'month', threshold: 10_000 },
    putWaba: { accessToken: 'EAAG' },
    putTenantKey: { name: 'x', scopes: ['send'] },
    rotateTenantKey: { overlapHours: 1 },
    putTenantEndpoint: { url: 'https://93.184.216.34/hook' },
    putTenantUser: { email: 'asha@store.example', role: 'admin' },
    putOperationsHook: { url: 'https://93.184.216.34/operations' },
    rotateOperationsHookSecret: { overlapHours: 1 },
    createPortalSession: { user: { externalId: 'u_17', email: 'asha@store.example' }, role: 'member' },
    createSetupLink: { successUrl: PRODUCT, failureUrl: PRODUCT, mode: 'steps' },
    putBrand: { name: null },
    putTenantBrand: { accentColor: '#0b5cad' },
    removeTenant: { confirm: name },
  };
  const last = [
    ...[
      'revokeSetupLink',
      'endPortalSessions',
      'deleteOperationsHook',
      'deleteTenantUser',
      'deleteTenantKey',
    ],
    ...['deleteTenantEndpoint', 'removeWaba', 'removeTenant'],
  ];
  const all = operationsOf(document).filter(({ operationId }) => operationId !== 'getPlatformDocument');
  const rank = ({ operationId = '', method }: (typeof all)[number]) =>
    last.includes(operationId)
      ? 3 + last.indexOf(operationId)
      : ['PUT', 'POST', 'GET', 'PATCH'].indexOf(method) / 2;
  let setupLink = '';
  for (const operation of all.toSorted((a, b) => rank(a) - rank(b))) {
    const { operationId = '', responses } = operation;
    const path = pathOf(operation)
      .replace('acme', name)
      .replace('900000000000101', wabaId)
      .replace('sl_17', setupLink)
      .replace('/api/platform', '');
    const { status, body } = await ask(operation.method as 'GET', path, bodies[operationId]);
    if (operationId === 'createSetupLink') setupLink = body.id;
    const answer = responses[status];
    expect([operationId, status, status < 300]).toEqual([operationId, status, true]);
    const type = typeof body === 'string' ? 'text/csv' : 'application/json';
    const schema = answer?.content?.[type]?.schema ?? {};
    expect([operationId, validatorOf(document, schema)(body)]).toEqual([operationId, []]);
  }
});
