import { spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { api } from './support/customer.ts';
import { npmPackages } from './support/npm-packages.ts';
import { pythonEnvironment } from './support/python-environment.ts';
import { admin, description } from './support/stack.ts';

/** Clients that others wrote, from their registries: only their base address is another one. */
const NPM = ['whatsapp-api-js@6.3.0', '@kapso/whatsapp-cloud-api@0.3.0'];

const scriptOf = (name: string) => fileURLToPath(new URL(`cloud-api/${name}`, import.meta.url));

type Result = { sent: string[]; [member: string]: unknown };

/** Runs a client, adds its webhook as an endpoint once it listens, and writes to it as a customer does. */
async function talk(program: string, script: string) {
  const { apiUrl, caPath, tenants } = description();
  const [{ wabaId, phoneNumberIds } = { wabaId: '', phoneNumberIds: [] }] = tenants;
  const { apiKey } = await admin('key', 'create', '--waba', wabaId, '--scopes', 'graph,graph_manage');
  const [secret, customer] = [
    `any text ${randomBytes(4).toString('hex')}`,
    `1202555${randomInt(1000, 9999)}`,
  ];
  const args = [script, `${apiUrl}/graph`, String(apiKey), phoneNumberIds[0] ?? '', wabaId, customer, secret];
  // Files have addresses of the public port, whose certificate the stack's own authority signed.
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: caPath, SSL_CERT_FILE: caPath };
  const client = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  onTestFinished(() => void client.kill());
  let errors = '';
  client.stderr.on('data', (chunk) => {
    errors += chunk;
    process.stderr.write(chunk);
  });
  const lines = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`the client ended: ${errors}`);
    return JSON.parse(value);
  };
  const { url } = await next();
  const endpoint = await api<{ id: string }>('POST', '/api/external/webhook-endpoints', {
    url,
    eventTypes: ['message', 'status', 'upstream.calls'],
    format: 'meta',
    appSecret: secret,
    verifyToken: 'verify me',
  });
  onTestFinished(async () => {
    await api('DELETE', `/api/external/webhook-endpoints/${endpoint.id}`);
  });
  const text = `grüße 👋 ${randomBytes(4).toString('hex')}`;
  const call = await ring(customer, await write(customer, text));
  const result = (await next()) as Result;
  for (const id of result.sent) expect(id).toMatch(/^wamid\./);
  const sent = await (await fetch(`${description().sandboxUrl}/sandbox/sent`)).text();
  for (const id of result.sent) expect(sent).toContain(id);
  return { result, customer, text, call };
}

/** The customer rings, as upstream reports it. */
async function ring(customer: string, { metadata, contacts }: Written): Promise<string> {
  const id = `wacid.${randomBytes(12).toString('hex')}`;
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const call = { id, from: customer, event: 'connect', timestamp, direction: 'USER_INITIATED' };
  const session = { sdp_type: 'offer', sdp: 'v=0' };
  const calls = [{ ...call, to: metadata.display_phone_number, session }];
  await report('fields', {
    field: 'calls',
    value: { messaging_product: 'whatsapp', metadata, contacts, calls },
  });
  return id;
}

/** Of each receipt of a message that the sandbox got in place of upstream, whether it shows that we type. */
async function receiptsOf(messageId: unknown): Promise<boolean[]> {
  const answer = await fetch(`${description().sandboxUrl}/sandbox/receipts`);
  const { data } = (await answer.json()) as { data: { body: Record<string, unknown> }[] };
  const own = data.filter(({ body }) => body.message_id === messageId);
  return own.map(({ body }) => body.typing_indicator !== undefined).sort();
}

/** Whom upstream names beside a message. */
type Written = { metadata: { display_phone_number: string }; contacts: unknown };

/** A text of a customer, as a user of `npm start` sends one with the sandbox. */
async function write(customer: string, text: string): Promise<Written> {
  const sent = await report('inbound', { type: 'text', from: customer, name: 'Asha', body: text });
  return (sent as { body: { entry: { changes: { value: Written }[] }[] } }).body.entry[0]?.changes[0]
    ?.value as Written;
}

/** Has the sandbox report something to the service in place of upstream. */
async function report(path: string, body: object): Promise<unknown> {
  const answer = await fetch(`${description().sandboxUrl}/sandbox/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const reported = await answer.json();
  expect(reported).toMatchObject({ status: 200 });
  return reported;
}

test('pywa sends, uploads, makes a template with a picture and sends it, marks as read and types, calls, verifies messages, statuses and calls, and sets up the number', async () => {
  const python = await pythonEnvironment('pywa');
  if (python === null) return;
  const { result, customer, text, call } = await talk(python.python, scriptOf('client.py'));
  expect(result).toMatchObject({
    media: [expect.stringMatching(/^\d{37}$/), 'image/jpeg', 68],
    received: [{ text, from: customer, name: 'Asha', bsuid: expect.stringMatching(/^US\.\d+$/) }],
    read: [[true, true]],
    inbound: expect.stringMatching(/^wamid\./),
    calls: [[expect.stringMatching(/^wacid\./), true], [[call, true, true]]],
    forged: [403],
    template: 'PENDING',
    edges: ['RETAIL', ['12025550143'], 'Hi', true],
  });
  for (const id of result.sent) expect(result.statuses).toContainEqual([id, 'read', customer]);
  expect(await receiptsOf(result.inbound)).toEqual([false, true]);
});

test('heyoo sends, uploads, sends a template with a picture, reads, marks as read and receives statuses', async () => {
  const python = await pythonEnvironment('heyoo');
  if (python === null) return;
  const { result, customer, text } = await talk(python.python, scriptOf('heyoo_client.py'));
  expect(result).toMatchObject({
    media: [68, { success: true }],
    received: [{ text, from: customer, name: 'Asha', type: 'text', read: { success: true } }],
    states: expect.arrayContaining(['delivered', 'read', 'sent']),
  });
  expect(result.sent).toHaveLength(4);
  expect(await receiptsOf(result.inbound)).toEqual([false]);
});

test('whatsapp-api-js and @kapso/whatsapp-cloud-api send, also a template with a picture, upload, mark as read and type, call, verify and receive', async () => {
  const place = await npmPackages('cloud-api', NPM);
  const script = join(place, 'clients.mjs');
  await copyFile(scriptOf('clients.mjs'), script);
  const { result, customer, text, call } = await talk(process.execPath, script);
  expect(result).toMatchObject({
    read: [true, true],
    forged: expect.arrayContaining([401]),
    call: [expect.stringMatching(/^wacid\./), true],
    media: ['image/jpeg', 84, true, 'image/jpeg'],
    refused: ['GraphApiError', 403, 10],
    received: {
      api: [{ text, from: customer, name: 'Asha' }],
      kapso: [{ text, from: customer }],
      calls: [[call, true, true]],
    },
  });
  expect(await receiptsOf(result.inbound)).toEqual([false, true]);
  const { data } = (await (await fetch(`${description().sandboxUrl}/sandbox/sent`)).json()) as {
    data: { id: string }[];
  };
  expect(data.find(({ id }) => id === result.sent[1])).toMatchObject({
    body: {
      template: {
        name: 'summer_offer',
        components: [{ type: 'header', parameters: [{ type: 'image', image: { id: expect.any(String) } }] }],
      },
    },
  });
});
