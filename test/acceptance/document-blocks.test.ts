import { execFile, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { blocksThatBegin, blockThatBegins } from '../support/document-blocks.ts';
import { replaced, runBlock, tenant } from './support/block-shell.ts';
import { packCli, runCli } from './support/built-cli.ts';
import { api, newestConversation } from './support/customer.ts';
import { missingPrograms, oldestNode } from './support/programs.ts';
import { pythonEnvironment } from './support/python-environment.ts';
import { description, PROJECT } from './support/stack.ts';
import { startTenantServer } from './support/tenant-server.ts';

/**
 * The blocks of code in docs/tenants beside those of the quick-starts, of live-blocks.test.ts and of cloud-api-blocks.test.ts, run against the real
 * stack: as they stand, but for ids and addresses of examples, in whose place those of the stack come.
 */

const run = promisify(execFile);
const ENDPOINTS = '/api/external/webhook-endpoints';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'heliograph-blocks-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const shell = async (commands: string, env?: Record<string, string>) => await runBlock(folder, commands, env);

describe('api.md', () => {
  /** What the curl blocks need, by the request that a block has. */
  const NEEDED: Readonly<
    Record<string, (customer: string, conversation: string) => Promise<Record<string, string>>>
  > = {
    '/read"': async (_customer, conversation) => {
      const path = `/api/external/conversations/${conversation}/messages?limit=1`;
      const { data } = await api<{ data: { serviceMessageId: string }[] }>('GET', path);
      return { '4711': data[0]?.serviceMessageId ?? '' };
    },
    'mug.jpg': async () => {
      writeFileSync(join(folder, 'mug.jpg'), Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'));
      return {};
    },
    'conversations/search': async (_customer, conversation) => ({
      'conversations/42': `conversations/${conversation}`,
    }),
    '"endpointId": "3"': async () => ({ '"endpointId": "3"': `"endpointId": "${tenant().endpointId}"` }),
    'external/erasures': async (customer) => {
      // Of another customer: one who is erased already is unknown to the request of the block.
      const { phone } = await newestConversation();
      const { id } = await api<{ id: string }>('POST', '/api/external/erasures', { customer: phone });
      return { '+1 202-555-0143': customer, 'erasures/7': `erasures/${id}` };
    },
    'external/exports': async (customer) => ({ '+1 202-555-0143': customer }),
    'payments/order-7': async () => {
      await api(
        'POST',
        '/api/external/messages',
        orderDetails(
          'order-7',
          {
            type: 'payment_gateway',
            payment_gateway: { type: 'razorpay', configuration_name: 'main', razorpay: {} },
          },
          'INR',
        ),
      );
      return {};
    },
  };

  /** The cursor of the list in the block; the list is about two seconds behind. */
  async function nextCursor(): Promise<string> {
    const path = '/api/external/events?order=asc&since=2026-11-19T00:00:00Z&limit=100';
    const list = () => api<{ nextCursor: string | null }>('GET', path);
    await expect.poll(async () => (await list()).nextCursor).not.toBeNull();
    return (await list()).nextCursor ?? '';
  }

  const CURL = blocksThatBegin('api.md', 'curl -s ').map((block) => ({
    title: /\/api[^"]*/.exec(block)?.[0],
    block,
  }));

  test.each(CURL)('$title', async ({ block }) => {
    const { phone } = await newestConversation();
    const { data } = await api<{ data: { id: string }[] }>('GET', '/api/external/conversations?limit=1');
    const need = Object.entries(NEEDED).find(([part]) => block.includes(part))?.[1];
    const values = (await need?.(phone, data[0]?.id ?? '')) ?? {};
    const printed = await shell(replaced(block, values), {
      NEXT_CURSOR: block.includes('NEXT_CURSOR') ? await nextCursor() : '',
    });
    if (block.includes('customer.zip')) {
      expect(readFileSync(join(folder, 'customer.zip')).subarray(0, 2).toString()).toBe('PK');
    } else expect(printed).toMatch(/^\{/);
    const [, endpointId] = /"id":"(\d+)","url":"https:\/\/shop/.exec(printed) ?? [];
    if (endpointId !== undefined) await api('DELETE', `${ENDPOINTS}/${endpointId}`);
  });

  test('the message is sent as it stands', async () => {
    const [head = '', body = ''] = blockThatBegins('api.md', 'POST /api/external/messages').split('\n\n');
    const [start = '', ...lines] = head.split('\n');
    const [method = '', path = ''] = start.split(' ');
    const headers = Object.fromEntries(lines.map((line) => line.split(': ') as [string, string]));
    const response = await fetch(`${description().apiUrl}${path}`, {
      method,
      headers: {
        ...headers,
        Authorization: `Bearer ${tenant().apiKey}`,
        'Idempotency-Key': `${headers['Idempotency-Key']}-${randomBytes(4).toString('hex')}`,
        'Content-Type': 'application/json',
      },
      body: replaced(body, { '800000000000111': tenant().phoneNumberIds[0] ?? '' }),
    });
    expect(response.status, await response.text()).toBe(200);
  });

  test('the way to pay is known: a message with it is sent without a warning', async () => {
    const payment = JSON.parse(blockThatBegins('api.md', '{"type": "pix_dynamic_code"'));
    const sent = await api<{ warnings?: unknown }>(
      'POST',
      '/api/external/messages',
      orderDetails('order-8', payment, 'BRL'),
    );
    expect(sent.warnings).toBeUndefined();
  });

  test('the error is one of the API', async () => {
    const documented = JSON.parse(blockThatBegins('api.md', '{\n  "error"'));
    const response = await fetch(`${description().apiUrl}/api/external/events?limit=101`, {
      headers: { authorization: `Bearer ${tenant().apiKey}` },
    });
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    expect(Object.keys(documented.error)).toEqual(Object.keys(error));
    for (const member of ['type', 'code', 'message', 'param'])
      expect(documented.error[member]).toBe(error[member]);
  });

  test('the next send fails after the command of the sandbox', async () => {
    const command = blockThatBegins('api.md', 'npm run sandbox -- fault');
    const place = mkdtempSync(join(folder, 'sandbox-'));
    const sandbox = `node ${join(PROJECT, 'bin/heliograph.js')} sandbox --url ${description().sandboxUrl}`;
    const script = command.replace('npm run sandbox --', sandbox.replace(/ --url .*$/, ''));
    await run('sh', ['-euc', `${script.trim()} --url ${description().sandboxUrl}`], { cwd: place });
    const body = {
      phoneNumberId: tenant().phoneNumberIds[0],
      to: '+12025550143',
      type: 'text',
      text: { body: 'x' },
    };
    await expect(api('POST', '/api/external/messages', body)).rejects.toThrow(/132001|424/);
  });
});

function orderDetails(reference: string, payment: object, currency: string): object {
  const amount = { value: 100, offset: 100 };
  const parameters = {
    reference_id: reference,
    type: 'digital-goods',
    currency,
    total_amount: amount,
    payment_type: currency === 'BRL' ? 'br' : 'upi',
    payment_settings: [payment],
    order: {
      status: 'pending',
      items: [{ retailer_id: 'mug', name: 'Mug', amount, quantity: 1 }],
      subtotal: amount,
    },
  };
  return {
    phoneNumberId: tenant().phoneNumberIds[0],
    to: '+12025550143',
    type: 'interactive',
    interactive: {
      type: 'order_details',
      body: { text: 'Your order' },
      action: { name: 'review_and_pay', parameters },
    },
  };
}

describe('webhooks.md verifies a real webhook, and refuses one that was changed:', () => {
  /** A webhook as it arrives at an endpoint with both kinds of signature. */
  async function webhook() {
    const server = await startTenantServer();
    const endpoint = await api<{ id: string; secret: string; publicKeys: { key: string }[] }>(
      'POST',
      ENDPOINTS,
      {
        url: `${server.url}/hook`,
        asymmetricSignature: 'ed25519',
      },
    );
    await api('POST', `${ENDPOINTS}/${endpoint.id}/test`, {});
    await api('DELETE', `${ENDPOINTS}/${endpoint.id}`);
    await server.goAway();
    // The endpoint also receives what other tests cause.
    const received = server.received().find(({ headers }) => headers['x-service-event-type'] === 'test');
    const publicKey = /whpk_[\w+/=]+/.exec(JSON.stringify(endpoint.publicKeys))?.[0] ?? '';
    return {
      secret: endpoint.secret,
      publicKey,
      headers: received?.headers ?? {},
      body: received?.body ?? '',
    };
  }

  async function verifies(file: string, program: string, text: string): Promise<void> {
    const { secret, publicKey, headers, body } = await webhook();
    const place = mkdtempSync(join(folder, 'verify-'));
    symlinkSync(join(PROJECT, 'node_modules'), join(place, 'node_modules'));
    writeFileSync(join(place, file), text);
    for (const [given, isRight] of [
      [body, true],
      [`${body} `, false],
    ] as const) {
      const env = {
        ...process.env,
        HELIOGRAPH_WEBHOOK_SECRET: secret,
        WEBHOOK_PUBLIC_KEY: publicKey,
        BODY: given,
        HEADERS: JSON.stringify(headers),
      };
      const outcome = run(program, [file], { cwd: place, env });
      if (isRight) expect((await outcome).stdout.trim()).toBe('verified');
      else await expect(outcome).rejects.toMatchObject({ code: expect.any(Number) });
    }
  }

  test('Node.js', async () => {
    const block = blockThatBegins('signatures.md', 'import { Webhook }');
    // Stands for Express: calls the handler with the raw body.
    const before = `const kept = [];
const express = { raw: () => null };
const queue = { add: (id, event) => kept.push(id, event.eventType) };
const response = { sendStatus: (status) => kept.push(status) };
const app = { post: (_path, _raw, handler) =>
  handler({ body: Buffer.from(process.env.BODY), headers: JSON.parse(process.env.HEADERS) }, response) };\n`;
    const after =
      "\nif (kept[0] !== 204 || kept[2] !== 'test') throw new Error(JSON.stringify(kept));\nconsole.log('verified');\n";
    await verifies('verify.mjs', process.execPath, `${before}${block}${after}`);
  });

  test('Node.js with a public key', async () => {
    const block = blockThatBegins('signatures.md', 'import { createPublicKey');
    const before = `const request = { headers: JSON.parse(process.env.HEADERS) };
const rawBody = Buffer.from(process.env.BODY);\n`;
    const after = "\nif (!isValid || !isFresh) process.exit(1);\nconsole.log('verified');\n";
    await verifies('verify.mjs', process.execPath, `${before}${block}${after}`);
  });

  test('Python', async ({ skip }) => {
    const python = await pythonEnvironment('webhooks');
    if (python === null) return skip();
    const before = `import json\nimport os as system\nraw_body = system.environ["BODY"]\nheaders = json.loads(system.environ["HEADERS"])\n`;
    const after = '\nassert event["eventType"] == "test"\nprint("verified")\n';
    await verifies(
      'verify.py',
      python.python,
      `${before}${blockThatBegins('signatures.md', 'import os')}${after}`,
    );
  });

  test('PHP', async ({ skip }) => {
    if ((await missingPrograms({ php: 'php-cli' })).length > 0) return skip();
    const before = `<?php\n$rawBody = getenv('BODY');\n$headers = json_decode(getenv('HEADERS'), true);\n`;
    const after = `\nif (!$valid || !$fresh) exit(1);\necho 'verified';\n`;
    await verifies('verify.php', 'php', `${before}${blockThatBegins('signatures.md', '$key =')}${after}`);
  });
});

test('webhooks.md has a content filter that an endpoint accepts', async () => {
  const { filter } = JSON.parse(blockThatBegins('endpoint-options.md', '{ "filter"'));
  const server = await startTenantServer();
  const { id } = await api<{ id: string }>('POST', ENDPOINTS, { url: `${server.url}/hook`, filter });
  const stored = await api<{ filter: string[] }>('GET', `${ENDPOINTS}/${id}`);
  await api('DELETE', `${ENDPOINTS}/${id}`);
  await server.goAway();
  expect(stored.filter).toEqual(filter);
});

test('endpoint-options.md has settings with which an endpoint buffers', async () => {
  const settings = JSON.parse(blockThatBegins('endpoint-options.md', '{ "orderScope"'));
  const server = await startTenantServer();
  const { id } = await api<{ id: string }>('POST', ENDPOINTS, { url: `${server.url}/hook`, ...settings });
  const stored = await api<object>('GET', `${ENDPOINTS}/${id}`);
  await api('DELETE', `${ENDPOINTS}/${id}`);
  await server.goAway();
  expect(stored).toMatchObject(settings);
});

test('customer-data.md verifies the report of an erasure', async ({ skip }) => {
  if ((await missingPrograms({ jq: 'jq', xxd: 'xxd', openssl: 'openssl' })).length > 0) return skip();
  const { phone } = await newestConversation();
  const { id } = await api<{ id: string }>('POST', '/api/external/erasures', { customer: phone });
  const erasure = () => api<{ state: string; report: object }>('GET', `/api/external/erasures/${id}`);
  await expect.poll(async () => (await erasure()).state).toBe('done');
  const { report } = await erasure();
  const block = blockThatBegins('customer-data.md', 'jq -cSj');
  writeFileSync(join(folder, 'report.json'), JSON.stringify(report));
  expect(await shell(block)).toMatch(/Verified Successfully/);
  writeFileSync(join(folder, 'report.json'), JSON.stringify(report).replace('"version":1', '"version":2'));
  await expect(shell(block)).rejects.toMatchObject({ code: 1 });
});

describe('mcp.md', () => {
  type Server = { command: string; args: string[]; env?: Record<string, string> };

  const serverOf = (block: string): Server => {
    const { mcpServers, servers } = JSON.parse(block);
    return (mcpServers ?? servers).heliograph;
  };

  /** Runs what the document calls `heliograph`, packed, as a user who has logged in as the document says. */
  async function installed() {
    const file = await packCli(mkdtempSync(join(folder, 'cli-')));
    const env = { HELIOGRAPH_CONFIG_DIR: mkdtempSync(join(folder, 'profile-')) };
    const login = replaced(blockThatBegins('mcp.md', 'heliograph login'), {
      'https://gateway.example': description().apiUrl,
    });
    const args = login.trim().split(' ').slice(1);
    expect(await runCli(file, args, env, `${tenant().apiKey}\n`)).toMatchObject({ code: 0 });
    return { file, env: { PATH: process.env.PATH ?? '', ...env } };
  }

  test('the settings of the assistants start the server, with the command that Claude Code is given too', async () => {
    const claude = blockThatBegins('mcp.md', 'claude mcp add heliograph');
    const { file, env: profile } = await installed();
    for (const block of [
      blockThatBegins('mcp.md', '{\n  "mcpServers": {\n    "heliograph": { "command"'),
      blockThatBegins('mcp.md', '{\n  "inputs"'),
    ]) {
      const { command, args, env = {} } = serverOf(block);
      expect(claude.split('-- ').at(-1)?.trim()).toBe([command, ...args].join(' '));
      const given = { HELIOGRAPH_URL: description().apiUrl, HELIOGRAPH_API_KEY: tenant().apiKey };
      expect(Object.keys(given)).toEqual(expect.arrayContaining(Object.keys(env)));
      const transport = new StdioClientTransport({
        command: oldestNode(),
        args: [file, ...args],
        env: { ...profile, ...(Object.keys(env).length > 0 && given) },
      });
      const client = new Client({ name: 'documents', version: '1.0.0' });
      await client.connect(transport);
      const { tools } = await client.listTools();
      const { isError } = await client.callTool({ name: 'getAccountIdentity', arguments: {} });
      await client.close();
      expect([tools.map(({ name }) => name), isError ?? false]).toEqual([
        expect.arrayContaining(['listEvents', 'searchDocs']),
        false,
      ]);
    }
  });

  test('the command by HTTP serves the address and takes the header that Claude Code is given', async () => {
    const settings = blockThatBegins('mcp.md', '{\n  "mcpServers": {\n    "heliograph": {\n      "type"');
    const { url: address, headers: documented } = JSON.parse(settings).mcpServers.heliograph;
    expect(documented).toEqual({ Authorization: expect.stringMatching(/^Bearer \$\{HELIOGRAPH_API_KEY\}$/) });
    const port = String(randomInt(20_000, 30_000));
    const { file, env } = await installed();
    const command = replaced(blockThatBegins('mcp.md', 'heliograph mcp'), {
      'heliograph mcp': `${oldestNode()} ${file} mcp`,
      'https://gateway.example': description().apiUrl,
      '8765': port,
    });
    const child = spawn('sh', ['-euc', `exec ${command}`], { env, stdio: 'ignore' });
    onTestFinished(() => void child.kill());
    const url = new URL(address.replace('8765', port));
    const headers = { authorization: `Bearer ${tenant().apiKey}` };
    const isListening = () =>
      fetch(url, { headers }).then(
        () => true,
        () => false,
      );
    await expect.poll(isListening).toBe(true);
    const client = new Client({ name: 'documents', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    expect((await client.listTools()).tools.length).toBeGreaterThan(5);
    await client.close();
  });
});
