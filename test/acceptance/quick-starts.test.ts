import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { api, type Customer, newestConversation, sendPicture } from './support/customer.ts';
import { pinnedVersion, writeDocumentFiles } from './support/document-files.ts';
import { checkTypes, installPackedClient } from './support/packed-client.ts';
import { missingPrograms } from './support/programs.ts';
import { pythonEnvironment } from './support/python-environment.ts';
import { description } from './support/stack.ts';
import { startTenantServer } from './support/tenant-server.ts';

/** What docs/tenants/quick-start says is done here: its programs are taken from the documents and run. */

const run = promisify(execFile);
const ENDPOINTS = '/api/external/webhook-endpoints';

type Command = { program: string; args: string[]; env?: Record<string, string> };

let directory: string;
let customer: Customer;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'heliograph-quick-start-'));
  customer = await newestConversation();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** The environment that the documents tell to set; clients trust the stack's own certificate. */
function environment(): Record<string, string> {
  const { apiUrl, tenants, caPath } = description();
  return {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '',
    HELIOGRAPH_URL: apiUrl,
    HELIOGRAPH_API_KEY: tenants[0]?.apiKey ?? '',
    TO: `+${customer.phone}`,
    SSL_CERT_FILE: caPath,
    CURL_CA_BUNDLE: caPath,
    NODE_EXTRA_CA_CERTS: caPath,
  };
}

/** Runs the client of a document, and looks for what it must have printed, downloaded and sent. */
async function clientWorks(cwd: string, { program, args, env }: Command): Promise<void> {
  const options = { cwd, env: { ...environment(), ...env } };
  const { stdout } = await run(program, args, options);
  expect(stdout).toContain('Fixture Store');
  expect(stdout).toContain(customer.text);
  expect(stdout).toContain(`downloaded ${customer.picture.length} bytes`);
  expect(readFileSync(join(cwd, 'download')).equals(customer.picture)).toBe(true);
  expect(stdout).toMatch(/^sent .*accepted/m);
  expect(stdout).toMatch(/^state .*accepted/m);
  const sent = await fetch(`${description().sandboxUrl}/sandbox/sent`);
  expect(JSON.stringify(await sent.json())).toContain(customer.phone);
  await expect(
    run(program, args, { ...options, env: { ...options.env, HELIOGRAPH_API_KEY: 'ck_wrong' } }),
  ).rejects.toMatchObject({ code: expect.any(Number) });
}

/** Starts the receiver of a document for an endpoint of its own: it takes what is signed, and nothing else. */
async function receiverWorks(cwd: string, { program, args, env }: Command): Promise<void> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/webhooks`;
  const { id, secret } = await api<{ id: string; secret: string }>('POST', ENDPOINTS, { url });
  const own = { ...environment(), ...env, PORT: String(port), WEBHOOK_SECRET: secret };
  const child = spawn(program, args, { cwd, env: own, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    await stop(child);
    await api('DELETE', `${ENDPOINTS}/${id}`);
  });
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk;
  });
  const refused = () =>
    fetch(url, { method: 'POST', body: '{}' }).then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(refused, { timeout: 20_000 }).toBe(401);
  const outcome = await api<{ state: string }>('POST', `${ENDPOINTS}/${id}/test`, {});
  expect(outcome.state).toBe('delivered');
  customer.picture = randomBytes(100);
  await sendPicture(customer.phone, customer.picture);
  await expect.poll(() => printed, { timeout: 30_000 }).toMatch(/^file https:\/\/.*\/received_media\//m);
  expect(printed).toMatch(/^test test_\d+$/m);
  expect(printed).toMatch(/^message wamid\.quick-/m);
  expect(printed).toContain('media.ready wamid.quick-');
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function folderOf(document: string): string {
  const folder = join(directory, document);
  mkdirSync(folder);
  expect(writeDocumentFiles(`${document}.md`, folder).length).toBeGreaterThanOrEqual(2);
  return folder;
}

describe('the quick-start', () => {
  test('for Python receives, reads, downloads and sends', { timeout: 300_000 }, async ({ skip }) => {
    const version = pinnedVersion('python.md', /pip install (standardwebhooks==[\d.]+)/);
    const environmentOfPython = await pythonEnvironment('quick-start', [version]);
    if (environmentOfPython === null) return skip();
    const { python } = environmentOfPython;
    const folder = folderOf('python');
    await clientWorks(folder, { program: python, args: ['client.py'] });
    await receiverWorks(folder, { program: python, args: ['receiver.py'] });
  });

  test('for Go receives, reads, downloads and sends', { timeout: 300_000 }, async ({ skip }) => {
    if ((await missingPrograms({ go: 'golang-go' })).length > 0) return skip();
    const folder = folderOf('go');
    await run('go', ['mod', 'tidy'], { cwd: folder });
    await run('go', ['build', '-o', join(folder, 'bin', '/'), './...'], { cwd: folder });
    await run('go', ['vet', './...'], { cwd: folder });
    await clientWorks(folder, { program: join(folder, 'bin', 'client'), args: [] });
    await receiverWorks(folder, { program: join(folder, 'bin', 'receiver'), args: [] });
  });

  test('for TypeScript does so with the client as it is packed, type-checked', async () => {
    const folder = folderOf('typescript');
    await installPackedClient(folder);
    await checkTypes(folder);
    await clientWorks(folder, { program: process.execPath, args: ['client.ts'] });
    await receiverWorks(folder, { program: process.execPath, args: ['receiver.ts'] });
    const wrong =
      "import { createHeliograph } from '@heliograph/client';\ncreateHeliograph({ baseUrl: '' });\n";
    writeFileSync(join(folder, 'wrong.ts'), wrong);
    await expect(checkTypes(folder)).rejects.toMatchObject({ stdout: expect.stringContaining('apiKey') });
  });

  test('for curl reads, downloads, sends and checks a signature by hand', async ({ skip }) => {
    if ((await missingPrograms({ curl: 'curl', openssl: 'openssl' })).length > 0) return skip();
    const folder = folderOf('curl');
    await clientWorks(folder, { program: 'sh', args: ['client.sh'] });
    const tenant = await startTenantServer();
    onTestFinished(() => tenant.goAway());
    const { id, secret } = await api<{ id: string; secret: string }>('POST', ENDPOINTS, {
      url: `${tenant.url}/webhooks`,
    });
    onTestFinished(() => api('DELETE', `${ENDPOINTS}/${id}`));
    await api('POST', `${ENDPOINTS}/${id}/test`, {});
    const [webhook] = tenant.received();
    const header = (name: string) => String(webhook?.headers[name]);
    const env = {
      ...environment(),
      WEBHOOK_SECRET: secret,
      WEBHOOK_ID: header('webhook-id'),
      WEBHOOK_TIMESTAMP: header('webhook-timestamp'),
      WEBHOOK_SIGNATURE: header('webhook-signature'),
    };
    const verify = (body: string) => {
      writeFileSync(join(folder, 'body'), body);
      return run('sh', ['verify.sh'], { cwd: folder, env });
    };
    expect((await verify(webhook?.body ?? '')).stdout).toBe('the signature is right\n');
    await expect(verify(`${webhook?.body} `)).rejects.toMatchObject({ code: 1 });
  });
});
