import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blockThatBegins } from '../support/document-blocks.ts';
import { listenInTest } from '../support/listen.ts';
import { replaced, runBlock, tenant } from './support/block-shell.ts';
import { api } from './support/customer.ts';
import { npmPackages } from './support/npm-packages.ts';
import { pythonEnvironment } from './support/python-environment.ts';
import { description } from './support/stack.ts';

/** The blocks of code of the pages about software that speaks the Cloud API, run against the real stack. */

const run = promisify(execFile);
const ENDPOINTS = '/api/external/webhook-endpoints';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'heliograph-cloud-api-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('cloud-api.md and its pages', () => {
  const BASE = 'https://<your Heliograph>/graph';
  const values = () => ({ base: `${description().apiUrl}/graph`, phone: tenant().phoneNumberIds[0] ?? '' });
  const to = () => `1202555${randomInt(1000, 9999)}`;

  test('the endpoint is added, and verified as Meta does it', async () => {
    const server = createServer((request, response) =>
      response.end(new URL(request.url ?? '', 'http://server').searchParams.get('hub.challenge')),
    );
    const port = await listenInTest(server);
    const url = `http://127.0.0.1:${port}/webhooks`;
    const block = blockThatBegins('cloud-api.md', 'curl -s');
    const printed = await runBlock(
      folder,
      replaced(block, { 'https://chat.example/webhooks/whatsapp': url }),
    );
    const { id, format } = JSON.parse(printed);
    await api('DELETE', `${ENDPOINTS}/${id}`);
    expect(format).toBe('meta');
  });

  test('the JSON for n8n is sent', async () => {
    const { base, phone } = values();
    const json = JSON.parse(blockThatBegins('cloud-api/n8n.md', '{\n  "messaging_product"'));
    const response = await fetch(`${base}/v26.0/${phone}/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant().apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...json, to: to() }),
    });
    const { messages } = (await response.json()) as { messages: { id: string }[] };
    expect(messages[0]?.id).toMatch(/^wamid\./);
  });

  test.for([
    [
      'pywa',
      () => `app = None\n${blockThatBegins('cloud-api/libraries.md', 'from pywa')}`,
      `client.send_message(to=customer, text="Hello").id`,
    ],
    [
      'heyoo',
      () => blockThatBegins('cloud-api/libraries.md', 'from heyoo'),
      `client.send_message("Hello", customer)["messages"][0]["id"]`,
    ],
  ] as const)('%s sends', async ([name, block, send], { skip }) => {
    const python = await pythonEnvironment(name);
    if (python === null) return skip();
    const { base, phone } = values();
    const text = replaced(block(), { [BASE]: base, '<phone number id>': phone, 'ck_…': tenant().apiKey });
    writeFileSync(join(folder, 'cloud.py'), `${text}\ncustomer = "${to()}"\nprint(${send})\n`);
    expect((await run(python.python, ['cloud.py'], { cwd: folder })).stdout).toMatch(/^wamid\./);
  });

  test.each([
    [() => blockThatBegins('cloud-api/libraries.md', 'import { WhatsAppAPI }'), 'whatsapp-api-js'],
    [
      () => blockThatBegins('cloud-api/libraries.md', 'import { WhatsAppClient }'),
      '@kapso/whatsapp-cloud-api',
    ],
  ])('the client for JavaScript sends (%#)', async (block, name) => {
    const place = await npmPackages('cloud-api', [
      'whatsapp-api-js@6.3.0',
      '@kapso/whatsapp-cloud-api@0.3.0',
    ]);
    const { base, phone } = values();
    const text = replaced(block(), { [BASE]: base, 'ck_…': tenant().apiKey });
    const send =
      name === 'whatsapp-api-js'
        ? `import { Text } from 'whatsapp-api-js/messages';\nconst sent = await api.sendMessage('${phone}', '${to()}', new Text('Hello'));`
        : `const sent = await client.messages.sendText({ phoneNumberId: '${phone}', to: '${to()}', body: 'Hello' });`;
    const own = join(folder, name.replaceAll('/', '-'));
    mkdirSync(own);
    symlinkSync(join(place, 'node_modules'), join(own, 'node_modules'));
    writeFileSync(join(own, 'cloud.mjs'), `${text}\n${send}\nconsole.log(sent.messages[0].id);\n`);
    expect((await run(process.execPath, ['cloud.mjs'], { cwd: own })).stdout).toMatch(/^wamid\./);
  });
});
