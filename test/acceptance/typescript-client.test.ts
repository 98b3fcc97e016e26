import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { listenInTest } from '../support/listen.ts';
import { installClient } from './support/client-project.ts';
import { api, type Customer, newestConversation } from './support/customer.ts';
import { startLosingProxy } from './support/losing-proxy.ts';
import { oldestNode } from './support/programs.ts';
import { description, PROJECT } from './support/stack.ts';

/** The TypeScript client as it is packed, against the real service, with the oldest Node.js that users may have. */

const run = promisify(execFile);
const MODULES = join(PROJECT, 'node_modules');
const COMPILER = join(MODULES, '.bin', 'tsc');

let project: string;
let packed: string;
let customer: Customer;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), 'heliograph-typescript-client-'));
  packed = await installClient(project, { [MODULES]: ['standardwebhooks', '@types'] });
  customer = await newestConversation();
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** Compiles a program and runs it, with Node.js 20 unless told otherwise; returns its last line, as JSON. */
async function ran(
  name: string,
  code: string,
  variables: Record<string, string> = {},
  node = oldestNode(),
): Promise<unknown> {
  const { apiUrl, caPath, tenants } = description();
  writeFileSync(join(project, `${name}.mts`), code);
  const options = ['--module', 'nodenext', '--target', 'es2022', '--types', 'node', '--strict'];
  await run(COMPILER, [...options, `${name}.mts`], { cwd: project }).catch((error) => {
    throw new Error(error.stdout);
  });
  const env = {
    PATH: `${dirname(node)}${delimiter}${process.env.PATH}`,
    HELIOGRAPH_URL: apiUrl,
    HELIOGRAPH_API_KEY: tenants[0]?.apiKey ?? '',
    PHONE_NUMBER_ID: tenants[0]?.phoneNumberIds[0] ?? '',
    NODE_EXTRA_CA_CERTS: caPath,
    ...variables,
  };
  const { stdout } = await run(node, [`${name}.mjs`], { cwd: project, env });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}

const BEGINNING = `import { createHeliograph } from '@heliograph/client';
const { HELIOGRAPH_URL: baseUrl = '', HELIOGRAPH_API_KEY: apiKey = '', PHONE_NUMBER_ID: phoneNumberId = '' } = process.env;
const heliograph = createHeliograph({ baseUrl, apiKey });
`;

describe('the packed client', () => {
  test('has its code, its types, README and package.json, and nothing else', async () => {
    const { stdout } = await run('tar', ['-tzf', packed]);
    const files = stdout.trim().split('\n');
    const others = files.filter((file) => !/^package\/dist\/[\w./-]+\.(js|d\.ts)$/.test(file));
    expect(others.sort()).toEqual(['package/README.md', 'package/package.json']);
    for (const file of files.filter((one) => one.endsWith('.js')))
      expect(files).toContain(file.replace(/\.js$/, '.d.ts'));
  });

  test.for(['nodenext', 'bundler'])(
    'has types that a project with moduleResolution %s finds',
    async (resolution) => {
      const folder = join(project, resolution);
      mkdirSync(folder);
      writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
      writeFileSync(
        join(folder, 'use.ts'),
        `import { createHeliograph, type Heliograph, type MessageToSend, type SentMessage, type WebhookEvent } from '@heliograph/client';
const heliograph: Heliograph = createHeliograph({ baseUrl: '', apiKey: '' });
export const ids = async (): Promise<string[]> => {
  const found: string[] = [];
  for await (const { id } of heliograph.eachEvent()) found.push(id);
  return found;
};
export const sent = async (body: MessageToSend): Promise<SentMessage> =>
  (await heliograph.sendMessage({ body })).data;
export const text = (event: WebhookEvent): string | undefined => event.eventType === 'message' ? event.data.message.type : undefined;
`,
      );
      const format = resolution === 'bundler' ? 'esnext' : 'nodenext';
      const options = ['--module', format, '--moduleResolution', resolution, '--target', 'es2022'];
      // Without skipLibCheck, so that the declarations of the client are checked too.
      const lib = ['--lib', 'es2022,dom,dom.iterable', '--types', 'node', '--strict', '--noEmit'];
      await run(COMPILER, [...options, ...lib, 'use.ts'], { cwd: folder }).catch((error) => {
        throw new Error(error.stdout);
      });
    },
  );

  test('runs the examples of its README', async () => {
    const { tenants } = description();
    const readme = readFileSync(join(PROJECT, 'clients', 'typescript', 'README.md'), 'utf8');
    const code = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block = '']) => block).join('\n');
    const { data } = await api<{ data: { id: string }[] }>('GET', '/api/external/conversations?limit=1');
    const path = `/api/external/conversations/${data[0]?.id}/messages`;
    const messages = await api<{ data: { mediaUrl: string | null; serviceMessageId: string }[] }>(
      'GET',
      path,
    );
    const media = messages.data.find(({ mediaUrl }) => mediaUrl !== null)?.serviceMessageId ?? '';
    const values = {
      "'https://gateway.example'": "process.env.HELIOGRAPH_URL ?? ''",
      "'ck_…'": "process.env.HELIOGRAPH_API_KEY ?? ''",
      "'800000000000111'": `'${tenants[0]?.phoneNumberIds[0]}'`,
      "'4711'": `'${media}'`,
      "'whsec_…'": 'secret',
    };
    const program = Object.entries(values).reduce((text, [example, value]) => {
      expect(text).toContain(example);
      return text.replaceAll(example, value);
    }, code);
    writeFileSync(join(project, 'mug.jpg'), JPEG);
    const signed = `import { Webhook } from 'standardwebhooks';
const secret = 'whsec_${randomBytes(24).toString('base64')}';
const rawBody = '{"eventType":"message","data":{"message":{"type":"text"}}}';
const at = new Date();
const signature = new Webhook(secret).sign('evt_1', at, rawBody);
const time = String(Math.floor(at.getTime() / 1000));
const request = { headers: { 'webhook-id': 'evt_1', 'webhook-timestamp': time, 'webhook-signature': signature } };
`;
    const end = '\nconsole.log(JSON.stringify([event.eventType, typeof patient]));\n';
    expect(await ran('readme', `${signed}${program}${end}`)).toEqual(['message', 'object']);
    expect(readFileSync(join(project, 'download')).equals(customer.picture)).toBe(true);
  });

  test('lists over pages what the service lists in one', async () => {
    const code = `${BEGINNING}
const ids: string[] = [];
for await (const { id } of heliograph.eachEvent({ query: { limit: 1, order: 'asc' } })) if (ids.push(id) === 3) break;
const found: string[] = [];
for await (const { id } of heliograph.eachFoundConversation({ body: { limit: 1, customer: process.env.CUSTOMER ?? '' } })) found.push(id);
console.log(JSON.stringify({ ids, found }));
`;
    const { data } = await api<{ data: { id: string }[] }>('GET', '/api/external/events?limit=3&order=asc');
    const result = (await ran('lists', code, { CUSTOMER: customer.phone })) as {
      ids: string[];
      found: string[];
    };
    expect(result.ids).toEqual(data.map(({ id }) => id));
    expect(result.found).toHaveLength(1);
  });

  test('uploads bytes, blobs and streams alike', async () => {
    writeFileSync(join(project, 'file.jpg'), JPEG);
    const code = `${BEGINNING}
import { openAsBlob, createReadStream, readFileSync } from 'node:fs';
const description = { mimeType: 'image/jpeg', fileName: 'a "b".jpg' };
const blob = await openAsBlob('file.jpg', { type: 'image/jpeg' });
const uploads = [
  await heliograph.uploadFile(readFileSync('file.jpg'), description),
  await heliograph.uploadFile(blob, { fileName: 'a "b".jpg' }),
  await heliograph.uploadFile(blob.stream(), description),
  await heliograph.uploadFile(createReadStream('file.jpg'), description),
];
console.log(JSON.stringify(uploads));
`;
    const uploads = (await ran('uploads', code)) as { sizeBytes: number; sha256: string; fileName: string }[];
    expect(uploads).toHaveLength(4);
    expect(new Set(uploads.map(({ sha256 }) => sha256)).size).toBe(1);
    expect(uploads[0]).toMatchObject({ sizeBytes: JPEG.length, mediaType: 'image' });
  });

  test('sends once though the responses get lost, and says which request failed', async () => {
    const proxy = await startLosingProxy(description().apiUrl, 2);
    onTestFinished(() => proxy.close());
    const text = `only once ${randomBytes(6).toString('hex')}`;
    const code = `${BEGINNING}
const { data } = await heliograph.sendMessage({
  body: { phoneNumberId, to: '+12025550143', type: 'text', text: { body: '${text}' } },
});
const error = await heliograph.getMessage({ path: { id: '999999999' } }).catch((thrown: unknown) => thrown);
console.log(JSON.stringify({ state: data.state, error }));
`;
    const result = await ran('losing', code, { HELIOGRAPH_URL: proxy.url });
    expect(proxy.lost()).toBe(2);
    expect(result).toMatchObject({
      state: 'accepted',
      error: {
        name: 'HeliographError',
        status: 404,
        code: 'not_found',
        requestId: expect.stringMatching(/^req_/),
      },
    });
    const sent = await (await fetch(`${description().sandboxUrl}/sandbox/sent`)).text();
    expect(sent.split(text)).toHaveLength(2);
  });

  test.for([
    ['the oldest Node.js', oldestNode],
    ['this Node.js', () => process.execPath],
  ] as const)(
    'reads past a 100 Continue of its service with %s, and leaves other connections alone',
    async ([, node]) => {
      const [mine, other] = [await continuingServer(), await continuingServer()];
      const code = `import { createHeliograph } from '@heliograph/client';
const { HELIOGRAPH_URL: baseUrl = '', HELIOGRAPH_API_KEY: apiKey = '' } = process.env;
const heliograph = createHeliograph({ baseUrl, apiKey, retries: 0 });
const ids = [];
for (const _ of [1, 2, 3]) ids.push((await heliograph.getAccountIdentity()).data.userId);
const others = await fetch('${other}').then(({ status }) => status, () => 'broken');
console.log(JSON.stringify({ ids, others }));
`;
      const result = await ran('continuing', code, { HELIOGRAPH_URL: mine }, node());
      expect(result).toEqual({ ids: [7, 7, 7], others: 'broken' });
    },
  );
});

const JPEG = Buffer.concat([
  Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'),
  randomBytes(5_000),
]);

/** A server behind a proxy that says 100 before each response, without having been asked. */
async function continuingServer(): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeContinue();
    response.setHeader('content-type', 'application/json').end('{"userId":7}');
  });
  const port = await listenInTest(server);
  return `http://127.0.0.1:${port}`;
}
