import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { api, type Customer, newestConversation, sendPicture } from './support/customer.ts';
import { documentCommands, writeDocumentFiles } from './support/document-files.ts';
import { freePort } from './support/free-ports.ts';
import { checkTypes, packClient } from './support/packed-client.ts';
import { missingPrograms, oldestNode, provideGo } from './support/programs.ts';
import { systemPython } from './support/python-environment.ts';
import { description, PROJECT } from './support/stack.ts';
import { startTenantServer } from './support/tenant-server.ts';

/** What docs/tenants/quick-start says is done here: its programs are taken from the documents and run. */

const run = promisify(execFile);
const ENDPOINTS = '/api/external/webhook-endpoints';

let directory: string;
let customer: Customer;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'heliograph-quick-start-'));
});
// A client of the test before has sent a message, which made another conversation the newest.
beforeEach(async () => {
  customer = await newestConversation();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Commands with what the document "Before you start" has a reader set, in a folder that has the state of npm start. */
function script(
  cwd: string,
  commands: string,
): [string, string[], { cwd: string; env: Record<string, string> }] {
  const data = join(cwd, '.data');
  if (!existsSync(data)) symlinkSync(inject('stack').dataDir, data);
  const env = nodeEnvironment(oldestNode());
  return ['sh', ['-euc', `${documentCommands('README.md', 'environment')}\n${commands}`], { cwd, env }];
}

/** By which npm reaches its registry here; whatever else npm tells its scripts would lead it out of the folder. */
const REGISTRY_SETTINGS = Object.fromEntries(
  Object.entries(process.env).filter(([name]) =>
    /^(npm_config_(registry|cafile|userconfig)|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS)$/i.test(name),
  ),
);

function nodeEnvironment(node: string): Record<string, string> {
  return { HOME: process.env.HOME ?? '', PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
}

/** Runs the client of a document, and looks for what it must have printed, downloaded and sent. */
async function clientWorks(cwd: string, document: string): Promise<void> {
  const commands = documentCommands(document, 'client');
  const { stdout } = await run(...script(cwd, commands));
  expect(stdout).toContain('Fixture Store');
  expect(stdout).toContain(customer.text);
  expect(stdout).toContain(`downloaded ${customer.picture.length} bytes`);
  expect(readFileSync(join(cwd, 'download')).equals(customer.picture)).toBe(true);
  expect(stdout).toMatch(/^sent .*accepted/m);
  expect(stdout).toMatch(/^state .*accepted/m);
  const sent = await fetch(`${description().sandboxUrl}/sandbox/sent`);
  expect(JSON.stringify(await sent.json())).toContain('12025550143');
  await expect(run(...script(cwd, `HELIOGRAPH_API_KEY=ck_wrong\n${commands}`))).rejects.toMatchObject({
    code: expect.any(Number),
  });
}

/** Adds an endpoint and starts the receiver of a document for it: it takes what is signed, and nothing else. */
async function receiverWorks(cwd: string, document: string): Promise<void> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/webhooks`;
  const commands = documentCommands(document, 'receiver');
  const withoutSecret = run(...script(cwd, `export PORT=${port} HELIOGRAPH_WEBHOOK_SECRET=\n${commands}`));
  await expect(withoutSecret).rejects.toMatchObject({
    stderr: expect.stringContaining('set HELIOGRAPH_WEBHOOK_SECRET'),
  });
  const endpoint = documentCommands('README.md', 'endpoint');
  const [program, args, options] = script(cwd, `export PORT=${port}\n${endpoint}\n${commands}`);
  const child = spawn(program, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => stop(child));
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      printed += chunk;
    });
  const refused = () =>
    fetch(url, { method: 'POST', body: '{}' }).then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(refused, { message: printed }).toBe(401);
  // What the receiver prints may come later than its response.
  await expect.poll(() => printed).toMatch(/refused: \S/);
  const { data } = await api<{ data: { id: string; url: string }[] }>('GET', ENDPOINTS);
  const id = data.find((one) => one.url === url)?.id;
  onTestFinished(() => api('DELETE', `${ENDPOINTS}/${id}`));
  const outcome = await api<{ state: string }>('POST', `${ENDPOINTS}/${id}/test`, {});
  expect(outcome.state).toBe('delivered');
  customer.picture = randomBytes(100);
  await sendPicture(customer.phone, customer.picture);
  await expect.poll(() => printed).toMatch(/^file https?:\/\/.*\/received_media\//m);
  expect(printed).toMatch(/^test test_\d+$/m);
  expect(printed).toMatch(/^message wamid\.quick-/m);
  expect(printed).toContain('media.ready wamid.quick-');
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  // The shell and the program that it runs.
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  await once(child, 'exit');
}

function folderOf(document: string): string {
  const folder = join(directory, document);
  mkdirSync(folder);
  expect(writeDocumentFiles(`${document}.md`, folder).length).toBeGreaterThanOrEqual(2);
  return folder;
}

describe('the quick-start', () => {
  test('writes as the customer, with a text and a picture, by the commands of its first page', async () => {
    const folder = join(directory, 'customer');
    mkdirSync(folder);
    const sandbox = `node ${join(PROJECT, 'bin', 'heliograph.js')} sandbox`;
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts: { sandbox } }));
    await run(...script(folder, documentCommands('README.md', 'customer')));
    await expect
      .poll(async () => JSON.stringify(await api('GET', '/api/external/events?type=message&limit=20')))
      .toMatch(/Is it ready\?.*"type":"image"|"type":"image".*Is it ready\?/s);
  });

  test('for Python receives, reads, downloads and sends', async ({ skip }) => {
    if ((await systemPython()) === null) return skip();
    const folder = folderOf('python');
    await run('sh', ['-euc', documentCommands('python.md', 'install')], { cwd: folder });
    await clientWorks(folder, 'python.md');
    await receiverWorks(folder, 'python.md');
  });

  test('for Go receives, reads, downloads and sends', async ({ skip }) => {
    if (!(await provideGo())) return skip();
    const folder = folderOf('go');
    const isCode = (path: string) => !path.endsWith('_test.go');
    cpSync(join(PROJECT, 'clients', 'go'), join(folder, 'heliograph'), { recursive: true, filter: isCode });
    await run('sh', ['-euc', documentCommands('go.md', 'install')], { cwd: folder });
    await run('go', ['vet', './...'], { cwd: folder });
    await clientWorks(folder, 'go.md');
    await receiverWorks(folder, 'go.md');
  });

  test('for TypeScript does so with the client as it is packed, type-checked, with Node.js 20', async () => {
    const folder = folderOf('typescript');
    await packClient(folder);
    const packages = documentCommands('typescript.md', 'packages');
    const env = nodeEnvironment(oldestNode());
    await run('sh', ['-euc', packages], { cwd: folder, env: { ...REGISTRY_SETTINGS, ...env } });
    await checkTypes(folder);
    expect((await run(...script(folder, 'node --version'))).stdout).toMatch(/^v20\./);
    await run('sh', ['-euc', documentCommands('typescript.md', 'install')], { cwd: folder, env });
    await clientWorks(folder, 'typescript.md');
    await receiverWorks(folder, 'typescript.md');
    const [program, args, options] = script(folder, 'node --version\nnode client.mts');
    const { stdout } = await run(program, args, { ...options, env: nodeEnvironment(process.execPath) });
    expect(stdout).toMatch(/^v24\..*^sent .*accepted/ms);
    const wrong =
      "import { createHeliograph } from '@heliograph/client';\ncreateHeliograph({ baseUrl: '' });\n";
    writeFileSync(join(folder, 'wrong.mts'), wrong);
    await expect(checkTypes(folder)).rejects.toMatchObject({ stdout: expect.stringContaining('apiKey') });
  });

  test('for curl reads, downloads, sends and checks a signature by hand', async ({ skip }) => {
    if ((await missingPrograms({ curl: 'curl', openssl: 'openssl' })).length > 0) return skip();
    const folder = folderOf('curl');
    await clientWorks(folder, 'curl.md');
    const tenant = await startTenantServer();
    onTestFinished(() => tenant.goAway());
    const { id, secret } = await api<{ id: string; secret: string }>('POST', ENDPOINTS, {
      url: `${tenant.url}/webhooks`,
    });
    onTestFinished(() => api('DELETE', `${ENDPOINTS}/${id}`));
    await api('POST', `${ENDPOINTS}/${id}/test`, {});
    const [webhook] = tenant.received();
    const header = (name: string) => String(webhook?.headers[name]);
    const verify = (body: string) => {
      writeFileSync(join(folder, 'body'), body);
      const [program, args, options] = script(folder, documentCommands('curl.md', 'verify'));
      const env = {
        ...options.env,
        HELIOGRAPH_WEBHOOK_SECRET: secret,
        WEBHOOK_ID: header('webhook-id'),
        WEBHOOK_TIMESTAMP: header('webhook-timestamp'),
        WEBHOOK_SIGNATURE: header('webhook-signature'),
      };
      return run(program, args, { ...options, env });
    };
    expect((await verify(webhook?.body ?? '')).stdout).toBe('the signature is right\n');
    await expect(verify(`${webhook?.body} `)).rejects.toMatchObject({ code: 1 });
  });
});
