import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { blocksThatBegin, blockThatBegins } from '../support/document-blocks.ts';
import { packCli } from './support/built-cli.ts';
import { api } from './support/customer.ts';
import { description } from './support/stack.ts';
import { startTenantServer } from './support/tenant-server.ts';
import { postUpstream, textBody } from './support/upstream.ts';

/** The blocks of code in docs/tenants that show live events and heliograph-cli, run as in document-blocks.test.ts. */

const run = promisify(execFile);
const ENDPOINTS = '/api/external/webhook-endpoints';
const SLOW = { interval: 200 };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'heliograph-live-blocks-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const apiKey = () => description().tenants[0]?.apiKey ?? '';

function environment(): NodeJS.ProcessEnv {
  return {
    ...process.env,
    PATH: `${join(folder, 'prefix', 'bin')}${delimiter}${process.env.PATH}`,
    npm_config_prefix: join(folder, 'prefix'),
    npm_config_offline: 'true',
    HELIOGRAPH_CONFIG_DIR: join(folder, 'config'),
  };
}

/** Runs a block until the test ends, and returns its output so far. */
function started(block: string, env: Record<string, string> = {}): () => string {
  const command = `exec ${block.trim()}`;
  const child = spawn('sh', ['-euc', command], { cwd: folder, env: { ...environment(), ...env } });
  let written = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      written += text;
    });
  }
  const closed = once(child, 'close');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  return () => written;
}

async function messageOfACustomer(name: string): Promise<string> {
  const id = `wamid.live-blocks-${name}-${Date.now()}`;
  expect(await postUpstream(textBody(id, 'hello'))).toBe(200);
  return id;
}

test('api.md: the stream sends the event that happens', async () => {
  const block = blockThatBegins('api.md', 'curl -sN');
  const output = started(block, { HELIOGRAPH_URL: description().apiUrl, HELIOGRAPH_API_KEY: apiKey() });
  await expect.poll(output, SLOW).toContain(': the stream begins');
  const id = await messageOfACustomer('curl');
  await expect.poll(output, SLOW).toContain(id);
});

describe('cli.md', () => {
  /** Runs a block with the API key as its input, and with values of the stack in place of its examples. */
  const shell = async (block: string, values: readonly (readonly [example: string, value: string])[]) => {
    for (const [example] of values) expect(block).toContain(example);
    const script = values.reduce((text, [example, value]) => text.replaceAll(example, value), block);
    const running = run('sh', ['-euc', script], { cwd: folder, env: environment() });
    running.child.stdin?.end(`${apiKey()}\n`);
    return (await running).stdout;
  };

  beforeAll(async () => {
    await packCli(folder);
    const block = blockThatBegins('cli.md', 'npm install --global');
    const values = [
      ['./heliograph-cli', './packed/heliograph-cli'],
      ['https://gateway.example', description().apiUrl],
    ] as const;
    expect(await shell(block, values)).toContain(description().tenants[0]?.businessName);
  });

  test('listen forwards the event that happens', async () => {
    const server = await startTenantServer();
    onTestFinished(() => server.goAway());
    const block = blockThatBegins('cli.md', 'heliograph listen');
    const example = 'http://localhost:3000/webhooks';
    expect(block).toContain(example);
    const output = started(block.replace(example, server.url));
    await expect.poll(output, SLOW).toContain('Waiting for events.');
    const id = await messageOfACustomer('listen');
    await expect.poll(() => server.accepted().some(({ body }) => body.includes(id)), SLOW).toBe(true);
  });

  test('trigger sends its samples, and verify accepts the signature of what came', async () => {
    const server = await startTenantServer();
    const { id, secret } = await api<{ id: string; secret: string }>('POST', ENDPOINTS, { url: server.url });
    onTestFinished(async () => {
      await api('DELETE', `${ENDPOINTS}/${id}`);
      await server.goAway();
    });
    for (const block of blocksThatBegin('cli.md', 'heliograph trigger')) {
      await shell(block, [['--to 3', `--to ${id}`]]);
    }
    // The endpoint also receives events that other tests cause.
    const samples = server
      .accepted()
      .filter(({ body }) => String(JSON.parse(body).eventId).startsWith('test_'));
    const [first] = samples;
    if (first === undefined) throw new Error('no sample came');
    const [image, one, other] = samples.map(({ body }) => JSON.parse(body));
    expect(image.eventType).toBe('message');
    expect([one.eventType, other.eventType, one.eventId]).toEqual(['status', 'status', other.eventId]);
    const { headers, body } = first;
    writeFileSync(join(folder, 'body.json'), body);
    const block = blockThatBegins('cli.md', 'heliograph verify');
    writeFileSync(join(folder, 'secret.txt'), `${secret}\n`);
    const values = [
      ['evt_…', String(headers['webhook-id'])],
      ['1790000000', String(headers['webhook-timestamp'])],
      ['v1,…', String(headers['webhook-signature'])],
    ] as const;
    await shell(block, values);
    writeFileSync(join(folder, 'body.json'), `${body}\n`);
    await expect(shell(block, values)).rejects.toMatchObject({ code: 1 });
  });
});
