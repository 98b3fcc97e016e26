import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type DocumentedOperation,
  type OpenApiDocument,
  operationsOf,
  validatorOf,
} from '../../support/openapi-document.ts';
import { addKey, apiOfFile, OTHER_WABA, testConfig } from './api-harness.ts';
import { exampleBodies, PLACE, pathOf, templatesOf } from './documented-requests.ts';

/**
 * Every parameter and every member of every operation of the document × values that nobody sends in good faith. None
 * may be answered with a fault of ours.
 */

const DEEP = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;

/** As JSON texts, because JavaScript values cannot be all of them. */
const HOSTILE_JSON = [
  ...[
    'null',
    'true',
    '0',
    '-1',
    '1.5',
    '1e308',
    '-1e308',
    '1e400',
    '9223372036854775808',
    '5e-324',
    '[]',
    '{}',
  ],
  ...[
    '""',
    '" "',
    '"\\u0000"',
    '"a\\u0000b"',
    '"\\ud800"',
    '"\\udc00x"',
    '"\\uffff"',
    '"💩"',
    '"%00"',
    '"\'--"',
  ],
  ...['"__proto__"', '{"__proto__":{"a":1}}', '{"constructor":{"prototype":1}}', '[null]', '[[[[]]]]'],
  ...['"9223372036854775808"', '"0000-00-00T00:00:00Z"', '"+999999-12-31T23:59:59Z"', '"NaN"', '"Infinity"'],
  ...[
    `"${'x'.repeat(5_000)}"`,
    `[${'0,'.repeat(2_000)}0]`,
    DEEP,
    '{"\\u0000":1}',
    '{"\\ud800":1}',
    '{"":{"":1}}',
  ],
];

const HOSTILE_BODIES = [
  ...[
    '',
    ' ',
    'null',
    '"x"',
    '1',
    '[]',
    '{',
    '{"a":1,"a":2}',
    '{"a":1}}',
    '\ufeff{}',
    DEEP,
    '{"a":NaN}',
    "{'a':1}",
  ],
  ...['{"__proto__":1}', `{"${'x'.repeat(10_000)}":1}`, `{"\\ud800${'x'.repeat(500)}":1}`],
];

const HOSTILE_TEXTS = [
  ...[
    '',
    '%00',
    'a%00b',
    '%20',
    '%F0%9F%92%A9',
    '%ED%A0%80',
    '%FF',
    '%27--',
    '0',
    '-1',
    '1.5',
    '1e3',
    '1e400',
  ],
  ...[
    '9223372036854775808',
    '99999999999999999999999',
    'null',
    '__proto__',
    'constructor',
    'x'.repeat(5_000),
  ],
  ...[
    '0000-00-00T00:00:00Z',
    '9999-12-31T23:59:59.999Z',
    '2026-11-21T09:30:00%2B99:99',
    '2026-02-31T00:00:00Z',
  ],
  ...['1970-01-01T00:00:00Z', '%2B275760-09-13T00:00:00Z', '[]', '{}', 'a&a=b', '..%2f..', '٣'],
];

const api = apiOfFile(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as { port: number };
  return { config: testConfig({ HELIOGRAPH_UPSTREAM_GRAPH_URL: `http://127.0.0.1:${port}` }) };
});
let operations: DocumentedOperation[];
let authorization: string;
let document: OpenApiDocument;

/** Stands for upstream and refuses everything. */
const upstream = createServer((_request, response) => {
  response.writeHead(400, { 'content-type': 'application/json' });
  response.end('{"error":{"message":"(#100) Invalid parameter","type":"OAuthException","code":100}}');
});

beforeAll(async () => {
  document = (await api.app.inject('/api/external/openapi.json')).json();
  operations = operationsOf(document).filter(({ security }) => security?.length !== 0);
  // Another WABA than that of the examples: what they would send has no number to leave from.
  ({ authorization } = await addKey(api.database, OTHER_WABA));
});
afterAll(() => upstream.close());

type HostileRequest = { url: string; payload?: string | Buffer; headers?: Record<string, string> };

function* hostileRequests(operation: DocumentedOperation): Generator<HostileRequest> {
  const bodies = exampleBodies(operation);
  const [body] = bodies;
  const valid = body === undefined ? {} : { payload: JSON.stringify(body) };
  for (const { name, in: place } of operation.parameters) {
    for (const text of HOSTILE_TEXTS) {
      if (place === 'path') yield { url: pathOf(operation, { name, text }), ...valid };
      if (place === 'query') yield { url: `${pathOf(operation)}?${name}=${text}`, ...valid };
      if (place === 'header' && /^[\x20-\x7e]*$/.test(text)) {
        yield { url: pathOf(operation), ...valid, headers: { [name]: text } };
      }
    }
  }
  const url = pathOf(operation);
  yield { url: `${url}?unknown=1&__proto__=1&constructor=2`, ...valid };
  if (body === undefined) return;
  for (const payload of HOSTILE_BODIES) yield { url, payload };
  yield { url, payload: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]) };
  for (const example of bodies) {
    for (const template of templatesOf(example)) {
      for (const json of HOSTILE_JSON) yield { url, payload: template.replace(`"${PLACE}"`, () => json) };
    }
  }
}

test('no hostile value of any parameter or member is answered with a fault of ours', async () => {
  const isError = validatorOf(document, { $ref: '#/components/schemas/Error' });
  const problems = new Set<string>();
  let count = 0;
  for (const operation of operations) {
    const { method, path, requestBody } = operation;
    const type =
      requestBody === undefined ? {} : { 'content-type': Object.keys(requestBody.content)[0] ?? '' };
    const ask = async ({ url, payload, headers }: HostileRequest) => {
      const request = { method: method as 'GET', url, headers: { authorization, ...type, ...headers } };
      const answer = await api.app.inject(payload === undefined ? request : { ...request, payload });
      count += 1;
      const what = `${method} ${path} ${url.slice(0, 150)} ${String(payload ?? '').slice(0, 300)}`;
      if (answer.statusCode >= 500) problems.add(`${answer.statusCode} ${what} ${answer.body}`);
      else if (answer.statusCode >= 400 && isError(answer.json()).length > 0) problems.add(`shape ${what}`);
    };
    const requests = [...hostileRequests(operation)];
    for (let start = 0; start < requests.length; start += 25) {
      await Promise.all(requests.slice(start, start + 25).map(ask));
    }
  }
  expect([...problems].slice(0, 40)).toEqual([]);
  expect(count).toBeGreaterThan(3_000);
});
