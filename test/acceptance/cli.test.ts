import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startApiProcess } from '../support/application-process.ts';
import { listenInTest } from '../support/listen.ts';
import { type CliRun, packCli, runCli, startCli } from './support/built-cli.ts';
import { api } from './support/customer.ts';
import { startCuttableProxy } from './support/cuttable-proxy.ts';
import { admin, description } from './support/stack.ts';
import { postUpstream, statusBody, textBody } from './support/upstream.ts';

let directory: string;
let file: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'heliograph-cli-acceptance-'));
  file = await packCli(directory);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const unique = (name: string) => `wamid.cli-${name}-${randomBytes(4).toString('hex')}`;

/** The environment of a user who is logged in as the first tenant. */
function asTenant(
  url = description().apiUrl,
  apiKey = description().tenants[0]?.apiKey ?? '',
): Record<string, string> {
  const home = mkdtempSync(join(directory, 'home-'));
  return { HELIOGRAPH_CONFIG_DIR: home, HELIOGRAPH_URL: url, HELIOGRAPH_API_KEY: apiKey };
}

/** Another API process on the database of the stack. */
function apiSettings(): Record<string, string> {
  const { postgresUrl, minioUrl, publicUrl } = description();
  return {
    HELIOGRAPH_MODE: 'development',
    HELIOGRAPH_DATABASE_URL: postgresUrl,
    HELIOGRAPH_API_DRAIN_NOTICE_MS: '0',
    HELIOGRAPH_API_METRICS_PORT: '0',
    HELIOGRAPH_OBJECT_STORE_URL: minioUrl,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: 'none',
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: 'none-none',
    HELIOGRAPH_PUBLIC_URL: publicUrl,
    HELIOGRAPH_UPSTREAM_APP_SECRETS: 'none',
    HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'none',
    HELIOGRAPH_ENCRYPTION_KEYS: `cli:${Buffer.alloc(32, 7).toString('base64')}`,
  };
}

type Hook = { headers: Record<string, string>; body: string; event: { eventId: string; eventType: string } };

/** The server of a developer, who verifies signatures. */
async function developerServer(answer: (hook: Hook) => number = () => 204) {
  const hooks: Hook[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const hook = { headers: request.headers as Record<string, string>, body, event: JSON.parse(body) };
    hooks.push(hook);
    response.writeHead(answer(hook)).end();
  });
  const port = await listenInTest(server);
  return { url: `http://127.0.0.1:${port}/hook`, hooks };
}

async function listening(run: CliRun): Promise<CliRun> {
  await expect.poll(run.stderr).toContain('Waiting for events.');
  return run;
}

const SLOW = { interval: 200 };

test('login keeps the key for its owner alone, whoami shows the account, logout forgets it', async () => {
  const { apiUrl, tenants } = description();
  const env = { HELIOGRAPH_CONFIG_DIR: mkdtempSync(join(directory, 'home-')) };
  const cli = (args: string[], input = '') => runCli(file, args, env, input);
  expect(await cli(['whoami'])).toMatchObject({ code: 3, stderr: expect.stringContaining('not logged in') });
  expect(await cli(['login', '--url', apiUrl], 'ck_1\n')).toMatchObject({ code: 2 });
  const wrong = await cli(['login', '--url', apiUrl], `ck_${'0'.repeat(64)}\n`);
  expect(wrong).toMatchObject({ code: 3, stderr: expect.stringContaining('invalid_api_key') });
  const right = await cli(['login', '--url', `${apiUrl}/`], `${tenants[0]?.apiKey}\n`);
  expect(right).toMatchObject({ code: 0, stdout: expect.stringContaining(tenants[0]?.businessName ?? '?') });
  const keyFile = join(env.HELIOGRAPH_CONFIG_DIR, 'login.json');
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
  const shown = await cli(['whoami']);
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining(tenants[0]?.wabaId ?? '?') });
  expect(shown.stdout).not.toContain(tenants[0]?.apiKey);
  expect((await cli(['logout'])).code).toBe(0);
  expect(existsSync(keyFile)).toBe(false);
});

test('listen forwards events in order per eventId, byte for byte, with signatures that verify', async () => {
  const server = await developerServer();
  const run = await listening(startCli(file, ['listen', '--forward-to', server.url], asTenant()));
  const secret = /whsec_\S+/.exec(run.stderr())?.[0] ?? '';
  const ids = [unique('order-a'), unique('order-b')];
  for (const status of ['sent', 'delivered', 'read']) {
    for (const id of ids) expect(await postUpstream(statusBody(id, status))).toBe(200);
  }
  const of = (id: string) => server.hooks.filter(({ event }) => event.eventId === id);
  await expect.poll(() => ids.flatMap(of).length, SLOW).toBe(6);
  for (const id of ids) {
    expect(of(id).map(({ body }) => JSON.parse(body).data.status.status)).toEqual([
      'sent',
      'delivered',
      'read',
    ]);
    expect(of(id).map(({ headers }) => headers['x-service-sequence'])).toEqual(['1', '2', '3']);
  }
  for (const { body, headers } of ids.flatMap(of)) {
    new Webhook(secret).verify(body, headers);
    const path = `/api/external/events/${headers['webhook-id']}`;
    const stored = await fetch(description().apiUrl + path, {
      headers: { authorization: `Bearer ${description().tenants[0]?.apiKey}` },
    });
    expect(await stored.text()).toContain(`"body":${body}}`);
  }
  run.interrupt();
  expect(await run.ended).toBe(130);
});

test('a delivery that failed is sent again by key press, and the diff of two deliveries is shown', async () => {
  let isDown = true;
  const server = await developerServer(() => (isDown ? 500 : 200));
  const env = { ...asTenant(), FORCE_COLOR: '1' };
  const run = await listening(
    startCli(file, ['listen', '--forward-to', server.url, '--types', 'status'], env),
  );
  const id = unique('retry');
  await postUpstream(textBody(unique('other'), 'not wanted'));
  for (const status of ['sent', 'read']) await postUpstream(statusBody(id, status));
  const mine = () => server.hooks.filter(({ event }) => event.eventId === id);
  await expect.poll(() => mine().length, SLOW).toBe(2);
  await expect.poll(run.stdout).toContain('\u001b[31m500');
  run.type('d');
  await expect.poll(run.stderr).toContain('+       "status":"read"');
  isDown = false;
  run.type('r');
  await expect.poll(() => mine().at(-1)?.headers['x-service-attempt'], SLOW).toBe('2');
  expect(mine()[2]?.body).toBe(mine()[1]?.body);
  expect(mine()[2]?.headers['x-service-delivery-id']).toBe(mine()[1]?.headers['x-service-delivery-id']);
  await expect.poll(run.stdout).toContain('\u001b[32m200');
  expect(server.hooks.every(({ event }) => event.eventType === 'status')).toBe(true);
});

test('a cut network and a restarted server lose nothing and double nothing', async () => {
  const settings = apiSettings();
  const first = await startApiProcess(settings);
  onTestFinished(() => first.kill());
  const proxy = await startCuttableProxy(Number(new URL(first.url).port));
  onTestFinished(() => proxy.close());
  const server = await developerServer();
  const run = await listening(startCli(file, ['listen', '--forward-to', server.url], asTenant(proxy.url)));
  const ids: string[] = [];
  const send = async (count: number) => {
    for (let n = 0; n < count; n += 1) {
      ids.push(unique('cut'));
      expect(await postUpstream(textBody(ids.at(-1) ?? '', 'x'))).toBe(200);
    }
  };
  await send(5);
  proxy.cut();
  await send(5);
  await expect.poll(run.stderr, SLOW).toContain('Connected again');
  await first.kill();
  proxy.lead(null);
  await send(5);
  await sleep(2_500);
  const second = await startApiProcess(settings);
  onTestFinished(() => second.kill());
  proxy.lead(Number(new URL(second.url).port));
  await send(5);
  const arrived = () => server.hooks.map(({ event }) => event.eventId).filter((id) => ids.includes(id));
  await expect.poll(() => new Set(arrived()).size, SLOW).toBe(ids.length);
  expect(arrived()).toHaveLength(ids.length);
  expect(run.stderr()).toMatch(/Disconnected: .*\. Again in \d/);
});

test('more than 1,000 events that came since the last session are forwarded in order, each once', async () => {
  const env = asTenant();
  const server = await developerServer();
  const listen = ['listen', '--forward-to', server.url, '--types', 'status'];
  const before = await listening(startCli(file, listen, env));
  await postUpstream(statusBody(unique('mark'), 'sent'));
  await expect.poll(() => server.hooks.length, SLOW).toBeGreaterThan(0);
  await sleep(500);
  before.interrupt();
  await before.ended;
  server.hooks.length = 0;
  const ids = Array.from({ length: 350 }, (_, n) => unique(`many-${n}`));
  const ladder = ['sent', 'delivered', 'read'];
  for (const status of ladder) {
    for (let n = 0; n < ids.length; n += 70) {
      const bodies = ids.slice(n, n + 70).map((id) => JSON.parse(statusBody(id, status)));
      const [one] = bodies;
      one.entry[0].changes = bodies.flatMap(({ entry }) => entry[0].changes);
      expect(await postUpstream(JSON.stringify(one))).toBe(200);
    }
  }
  const isThere = async () => {
    const page = await api<{ data: unknown[] }>('GET', `/api/external/events?eventId=${ids.at(-1)}`);
    return page.data.length;
  };
  await expect.poll(isThere, SLOW).toBe(ladder.length);
  // The stream is about two seconds behind: until then, they would belong to a session that begins now.
  await sleep(3_000);
  const other = { ...env, HELIOGRAPH_CONFIG_DIR: `${env.HELIOGRAPH_CONFIG_DIR}-other` };
  cpSync(env.HELIOGRAPH_CONFIG_DIR ?? '', other.HELIOGRAPH_CONFIG_DIR, { recursive: true });
  const told = await runCli(file, [...listen, '--idle-exit', '1'], other);
  expect(told.stderr).toMatch(/More than 100 events came since the last session\. --resume/);
  expect(server.hooks).toHaveLength(0);
  const resumed = await runCli(file, [...listen, '--resume', '--idle-exit', '8'], env);
  expect([resumed.code, resumed.stderr]).toEqual([0, expect.not.stringContaining('Disconnected')]);
  const mine = new Set(ids);
  const arrived = server.hooks.filter(({ event }) => mine.has(event.eventId));
  expect(arrived).toHaveLength(ids.length * ladder.length);
  const byId = Map.groupBy(arrived, ({ event }) => event.eventId);
  for (const hooks of byId.values()) {
    expect(hooks.map(({ body }) => JSON.parse(body).data.status.status)).toEqual(ladder);
  }
});

test('a revoked key ends the session with clear words and its own exit code', async () => {
  const wabaId = description().tenants[0]?.wabaId ?? '';
  const made = await admin('key', 'create', '--waba', wabaId, '--name', 'cli', '--scopes', 'read_events');
  const server = await developerServer();
  const env = asTenant(description().apiUrl, String(made.apiKey));
  const run = await listening(startCli(file, ['listen', '--forward-to', server.url], env));
  await admin('key', 'revoke', String(made.id));
  expect(await run.ended).toBe(3);
  expect(run.stderr()).toContain('The API key was revoked. Run "heliograph login" with another one.');
  expect(await runCli(file, ['tail'], env)).toMatchObject({ code: 3 });
  const away = await runCli(file, ['events'], { ...env, HELIOGRAPH_URL: 'http://127.0.0.1:9' });
  expect(away).toMatchObject({ code: 4, stderr: expect.stringMatching(/cannot be reached/) });
});

test('trigger sends samples by the real path, and shows that one eventId can be two events', async () => {
  const server = await developerServer();
  const { id } = await api<{ id: string }>('POST', '/api/external/webhook-endpoints', { url: server.url });
  onTestFinished(() => void api('DELETE', `/api/external/webhook-endpoints/${id}`));
  const env = asTenant();
  for (const [sample, type] of [
    ['test', 'test'],
    ['image', 'message'],
    ['order', 'order'],
    ['payment', 'payment'],
    ['status.failed', 'status'],
  ] as const) {
    const { code, stdout } = await runCli(file, ['trigger', sample, '--to', id, '--json'], env);
    expect([sample, code, JSON.parse(stdout).state]).toEqual([sample, 0, 'delivered']);
    expect(server.hooks.at(-1)?.event.eventType).toBe(type);
  }
  const twice = await runCli(file, ['trigger', 'status', '--to', id, '--same-event-id', '--json'], env);
  const [one, other] = JSON.parse(twice.stdout);
  expect([twice.code, one.eventId === other.eventId, one.id === other.id]).toEqual([0, true, false]);
  const [first, second] = server.hooks.slice(-2);
  expect(first?.event.eventId).toBe(second?.event.eventId);
  const shown = await runCli(file, ['events', one.id], env);
  expect(shown.stdout).toMatch(/attempt 1 .*HTTP 204/);
  expect((await runCli(file, ['deliveries', one.id, '--json'], env)).stdout).toContain('"delivered"');
  const replayed = await runCli(file, ['replay', one.id, '--endpoint', id, '--wait'], env);
  expect([replayed.code, replayed.stdout]).toEqual([0, expect.stringContaining('1 delivered')]);
});

test('send sends a message, and refusals of the service have their own exit code', async () => {
  const from = description().tenants[0]?.phoneNumberIds[0] ?? '';
  const env = asTenant();
  await postUpstream(textBody(unique('window'), 'hello'));
  const args = ['send', '--from', from, '--to', '+12025550143', '--text', 'Your order is ready.', '--json'];
  const sent = await runCli(file, args, env);
  expect([sent.code, JSON.parse(sent.stdout)]).toEqual([
    0,
    expect.objectContaining({ serviceMessageId: expect.any(String) }),
  ]);
  const refused = await runCli(file, ['events', 'evt_1'], env);
  expect(refused).toMatchObject({ code: 5, stderr: expect.stringContaining('not_found') });
  const tail = await listening(startCli(file, ['tail', '--json'], env));
  const id = unique('tail');
  await postUpstream(textBody(id, 'tailed'));
  await expect.poll(tail.stdout, SLOW).toContain(id);
  const lines = tail.stdout().trim().split('\n');
  expect(JSON.parse(lines.find((line) => line.includes(id)) ?? '').body.data.message.id).toBe(id);
});
