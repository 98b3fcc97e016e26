import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { newWebhookSecret, signStandard } from '../../../src/engine/endpoint/webhook-signature.ts';
import { documentBlocks } from '../../support/document-blocks.ts';

/** The recipe for n8n, without n8n: the code of its node, and how its workflow is put together. */

const PLACE = new URL('../../../examples/receivers/n8n/', import.meta.url);

type Node = { name: string; type: string; parameters: Record<string, unknown> };
type Workflow = {
  nodes: Node[];
  connections: Record<string, { main: { node: string }[][] }>;
};
const workflow = JSON.parse(readFileSync(new URL('workflow.json', PLACE), 'utf8')) as Workflow;

const code = String(workflow.nodes.find(({ name }) => name === 'Verify')?.parameters.jsCode);

const SECRET = newWebhookSecret();
const BODY = '{"eventType":"test", "eventId":"1","data":{"message":"é 👋","n":90071992547409931}}';

type Output = { json: { isValid: boolean; webhookId?: string; event: string | null } }[];

/** Runs the code as a Code node does. */
async function verified(headers: Record<string, string>, body = BODY, secret = SECRET) {
  const AsyncFunction = (async () => {}).constructor as new (
    ...parts: string[]
  ) => (this: object, ...given: unknown[]) => Promise<Output>;
  const node = new AsyncFunction('$input', '$env', 'require', code);
  const helpers = { getBinaryDataBuffer: async () => Buffer.from(body) };
  const input = { first: () => ({ json: { headers } }) };
  const require = createRequire(import.meta.url);
  const [item] = await node.call({ helpers }, input, { HELIOGRAPH_WEBHOOK_SECRET: secret }, require);
  return item?.json;
}

function headersOf(secrets: string[], secondsAgo = 0): Record<string, string> {
  const timestampSeconds = Math.floor(Date.now() / 1_000) - secondsAgo;
  return {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signStandard({ secrets, id: 'evt_1', timestampSeconds, body: Buffer.from(BODY) }),
  };
}

test('the code of the n8n recipe gives the event of what the service signed, with either secret of a rotation', async () => {
  const newest = newWebhookSecret();
  for (const secret of [SECRET, newest])
    expect(await verified(headersOf([newest, SECRET]), BODY, secret)).toEqual({
      isValid: true,
      webhookId: 'evt_1',
      event: BODY,
    });
});

test('the code of the n8n recipe gives nothing of what is changed, old, or signed by others', async () => {
  const refused = { isValid: false, event: null };
  expect(await verified(headersOf([SECRET]), `${BODY} `)).toMatchObject(refused);
  expect(await verified(headersOf([newWebhookSecret()]))).toMatchObject(refused);
  expect(await verified(headersOf([SECRET], 600))).toMatchObject(refused);
  expect(await verified({ ...headersOf([SECRET]), 'webhook-timestamp': 'x' })).toMatchObject(refused);
  expect(await verified({})).toMatchObject(refused);
});

test('the page of the receivers shows the code of the n8n workflow', () => {
  const shown = documentBlocks().find(({ marker }) => marker === 'code: n8n');
  expect(shown?.code).toBe(code);
});

test('the n8n workflow keeps the raw body, stores what is valid once, and only then confirms', () => {
  const nodeOf = (name: string) => workflow.nodes.find((node) => node.name === name);
  const parametersOf = (name: string) => nodeOf(name)?.parameters ?? {};
  const after = (name: string) => workflow.connections[name]?.main.map(([next]) => next?.node);
  expect(parametersOf('Webhook')).toMatchObject({
    httpMethod: 'POST',
    responseMode: 'responseNode',
    options: { rawBody: true, binaryPropertyName: 'data' },
  });
  expect(after('Webhook')).toEqual(['Verify']);
  expect(after('Verify')).toEqual(['Is it valid']);
  expect(after('Is it valid')).toEqual(['Store once', 'Refuse']);
  expect(after('Store once')).toEqual(['Confirm']);
  expect(parametersOf('Store once').query).toContain('ON CONFLICT (webhook_id) DO NOTHING');
  expect(parametersOf('Confirm')).toMatchObject({ options: { responseCode: 204 } });
  expect(parametersOf('Refuse')).toMatchObject({ options: { responseCode: 401 } });
  for (const { main } of Object.values(workflow.connections))
    for (const { node } of main.flat()) expect(nodeOf(node), node).toBeDefined();
});
