import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type OpenApiDocument, operationsOf, validatorOf } from '../../../support/openapi-document.ts';
import { type SendingStack, startSendingStack } from './sending-stack.ts';

/** An upstream that takes every message: it knows forms that the service does not know yet. */

const TO = '12025550143';
const received: unknown[] = [];

const upstream = createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', () => {
    received.push(JSON.parse(body));
    const id = `wamid.${received.length}`;
    const contacts = [{ input: TO, wa_id: TO }];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ messaging_product: 'whatsapp', contacts, messages: [{ id }] }));
  });
});

let stack: SendingStack;
let url: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as AddressInfo;
  stack = await startSendingStack({ HELIOGRAPH_UPSTREAM_GRAPH_URL: `http://127.0.0.1:${port}` });
  url = await stack.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await stack.stop();
  await new Promise((resolve) => upstream.close(resolve));
});

async function send(message: object) {
  const { authorization, number } = await stack.newTenant();
  const response = await fetch(`${url}/api/external/messages`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ phoneNumberId: number, to: TO, ...message }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** What the document says about the body of a 200. */
async function problemsOf(body: unknown): Promise<string[]> {
  const document = (await (await fetch(`${url}/api/external/openapi.json`)).json()) as OpenApiDocument;
  const operation = operationsOf(document).find((one) => one.operationId === 'sendMessage');
  const schema = operation?.responses['200']?.content?.['application/json']?.schema;
  if (schema === undefined) throw new Error('the document has no body for the 200 of sendMessage');
  const warnings = JSON.stringify(schema).includes('$ref')
    ? JSON.stringify(document.components.schemas?.SentMessage)
    : JSON.stringify(schema);
  expect(warnings).toContain('"warnings"');
  return validatorOf(document, schema)(body);
}

test.each([
  ['an unknown type', { type: 'poll', poll: { question: 'Tea?' } }, ['type']],
  [
    'an unknown type of interactive message',
    { type: 'interactive', interactive: { type: 'quiz', action: { rounds: [{ a: 1 }] } } },
    ['interactive/type'],
  ],
  [
    'unknown members, in an object and in a list',
    {
      type: 'interactive',
      interactive: {
        type: 'button',
        body: { text: 'Tea?', style: 'bold' },
        action: { buttons: [{ type: 'reply', reply: { id: 'y', title: 'Yes', icon: 'leaf' } }] },
      },
    },
    ['interactive/body/style', 'interactive/action/buttons/0/reply/icon'],
  ],
])(
  '%s that upstream takes: 200 with warnings, and upstream got it as it was',
  async (_what, message, params) => {
    const { status, body } = await send(message);
    expect([status, body.state]).toEqual([200, 'accepted']);
    expect(body.warnings).toEqual(
      params.map((param) => ({ param, message: expect.stringMatching(/passed on/) })),
    );
    expect(received.at(-1)).toMatchObject(message);
    expect(await problemsOf(body)).toEqual([]);
    expect(await problemsOf({ ...body, warnings: [{ param: 7 }] })).not.toEqual([]);
  },
);

test('a message that the service knows has no warnings', async () => {
  const { status, body } = await send({ type: 'text', text: { body: 'Tea?' } });
  expect(status).toBe(200);
  expect(body).not.toHaveProperty('warnings');
  expect(await problemsOf(body)).toEqual([]);
});
