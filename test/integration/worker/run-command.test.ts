import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, onTestFinished, test } from 'vitest';
import { ensureCertificate } from '../../../dev/embedded/certificate.ts';
import { findFreePorts } from '../../../dev/embedded/ports.ts';
import { startUpstreamServer } from '../../../dev/sandbox/upstream-server.ts';
import { ACCESS_TOKEN as SEALED_TOKEN } from '../../../src/features/accounts/access-tokens.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { MIGRATIONS } from '../../../src/platform/postgres/migrations.ts';
import { execute, queryColumn } from '../../../src/platform/postgres/sql.ts';
import { earlierDatabase, WABA } from '../../support/earlier-database.ts';
import { ACCOUNT, bodyOf, imageMessage, textMessage } from '../../support/load/upstream-bodies.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { drawIdsApart, testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { addKey, signed } from '../api/api-harness.ts';
import { startTemporalProxy } from '../platform/temporal/temporal-proxy.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const ACCESS_TOKEN = 'EAAG-test-token';

/** The settings as a platform gives them: its database and address under its names, the rest under ours. */
function platformEnvironment(
  databaseUrl: string,
  overrides: Record<string, string> = {},
): Record<string, string> {
  const {
    HELIOGRAPH_DATABASE_URL: _,
    HELIOGRAPH_PUBLIC_URL: RENDER_EXTERNAL_URL = '',
    ...settings
  } = testSettings(databaseUrl);
  return {
    PATH: process.env.PATH ?? '',
    DATABASE_URL: databaseUrl,
    RENDER_EXTERNAL_URL,
    ...settings,
    ...overrides,
  };
}

/** Runs `heliograph-server <args>` of a folder. */
/** Not in the folder of a stack that runs here, whose settings commands would take. */
function start(env: Record<string, string>, args: readonly string[], root = ROOT) {
  const child = spawn(process.execPath, [join(root, 'src', 'main.ts'), ...args], {
    env,
    cwd: tmpdir(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { output: () => printed, ended, stop: () => child.kill('SIGTERM') };
}

async function startUpstream() {
  const upstream = await startUpstreamServer({
    host: '127.0.0.1',
    port: 0,
    appSecret: 'test-app-secret',
    verifyToken: 'test-verify-token',
    ingressUrl: 'http://127.0.0.1:9',
    accessToken: ACCESS_TOKEN,
    statusDelayMs: 3_600_000,
  });
  onTestFinished(() => upstream.close());
  const sent = async () => {
    const response = await fetch(`${upstream.url}/sandbox/sent`);
    return ((await response.json()) as { data: unknown[] }).data.length;
  };
  return { url: upstream.url, sent };
}

/** Temporal as a cluster of an operator's has it: behind TLS, with an authority that no system knows. */
async function temporalWithTls() {
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-run-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const certificate = await ensureCertificate(directory);
  const { address } = await startTemporalProxy(inject('infrastructure').temporalAddress, { certificate });
  return {
    HELIOGRAPH_TEMPORAL_ADDRESS: address,
    HELIOGRAPH_TEMPORAL_TLS: 'true',
    HELIOGRAPH_TEMPORAL_TLS_CA_FILE: certificate.caPath,
  };
}

/** The checks that are not well; those of a port where nothing listens are unknown. */
async function unwell(port: number): Promise<string[]> {
  const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
  if (response === null) return ['no answer'];
  const { checks } = (await response.json()) as { checks: Record<string, string> };
  return ['database', 'schema', 'objectStore', 'temporal'].filter((name) => checks[name] !== 'ok');
}

/** An access token and an API key, as an operator adds them. */
async function addAccess(database: Database): Promise<string> {
  const sealed = testSecretBox.seal(ACCESS_TOKEN, SEALED_TOKEN.place(WABA));
  await execute(database, 'update wabas set access_token_sealed = :sealed where waba_id = :waba', {
    sealed,
    waba: WABA,
  });
  return (await addKey(database, WABA)).authorization;
}

test('two that start at once on a database of 0.1.0 migrate it once; messages come in, files are stored, sends go out', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const { database, url } = await earlierDatabase([`${receiver.url}/hook`]);
  await drawIdsApart(database);
  const upstream = await startUpstream();
  const ports = await findFreePorts(2);
  const [first = 0, second = 0] = ports;
  const env = platformEnvironment(url, {
    HELIOGRAPH_API_HOST: '127.0.0.1',
    HELIOGRAPH_UPSTREAM_GRAPH_URL: upstream.url,
    ...(await temporalWithTls()),
  });
  const processes = ports.map((port) => start({ ...env, PORT: String(port) }, ['run']));
  for (const [n, port] of ports.entries())
    await eventually(`${port} is well`, () => unwell(port), { is: [], withinMs: 240_000 }).catch((error) => {
      throw new Error(`${error.message}\n${processes[n]?.output()}`);
    });
  const applied = await queryColumn(database, 'select name from schema_migrations order by id');
  expect(applied).toEqual(Object.keys(MIGRATIONS));
  expect(processes.filter(({ output }) => output().includes('"msg":"migrated"'))).toHaveLength(1);

  const body = bodyOf(ACCOUNT, [textMessage('wamid.RUN1', 'x'), imageMessage('wamid.RUN2', '4711')]);
  const address = `http://127.0.0.1:${first}/upstream/webhook`;
  expect((await fetch(address, { method: 'POST', body, headers: signed(body) })).status).toBe(200);
  const authorization = await addAccess(database);
  const events = () => receiver.received.map(({ headers }) => headers['x-service-event-id']);
  await eventually('two messages and a file', () => events().toSorted(), {
    is: ['wamid.RUN1', 'wamid.RUN2', 'wamid.RUN2_media'],
  });
  const ready = receiver.received.find((one) => one.body.includes('mediaPath'))?.body ?? '';
  const file = await fetch(`http://127.0.0.1:${second}${JSON.parse(ready).data.mediaPath}`);
  expect(await file.text()).toBe('fixture-media:4711\n');

  const answer = await fetch(`http://127.0.0.1:${second}/api/external/messages`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({
      phoneNumberId: ACCOUNT.phoneNumberId,
      to: '+12025550143',
      type: 'text',
      text: { body: 'Hello' },
    }),
  });
  expect(answer.status).toBeLessThan(300);
  await eventually('upstream has the message', upstream.sent, { is: 1 });
  for (const { stop } of processes) stop();
  expect(await Promise.all(processes.map(({ ended }) => ended))).toEqual([0, 0]);
});

test('all settings that are wrong or missing are named at once, with the variable that gave them, and no value', async () => {
  const { HELIOGRAPH_UPSTREAM_APP_SECRETS: _, ...env } = platformEnvironment(
    'mysql://u:secret-password@127.0.0.1/db',
    { PORT: 'eighty', HELIOGRAPH_LOG_LEVEL: 'loud', HELIOGRAPH_NO_SETTING: 'x' },
  );
  const { ended, output } = start(env, ['run']);
  expect(await ended).toBe(2);
  for (const name of [
    'HELIOGRAPH_DATABASE_URL ',
    'HELIOGRAPH_API_PORT must be',
    'HELIOGRAPH_UPSTREAM_APP_SECRETS is required',
    'HELIOGRAPH_LOG_LEVEL must be',
    'HELIOGRAPH_NO_SETTING is not',
    'HELIOGRAPH_API_PORT is that of PORT',
    'HELIOGRAPH_DATABASE_URL is that of DATABASE_URL',
  ])
    expect(output()).toContain(name);
  expect(output()).not.toContain('secret-password');
});

test('a schema that cannot be migrated ends it with a code, so that the platform starts it again', async () => {
  const { ended, output } = start(platformEnvironment('postgresql://u:p@127.0.0.1:9/db'), ['run']);
  expect(await ended).toBe(1);
  expect(output()).toContain('the schema could not be migrated');
});

/** The sources as an image has them, without development tools. */
function imageFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'heliograph-image-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const path of ['src', 'package.json'])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

test('commands of operators read what the platform sets in an image, and in a clone they do not', async () => {
  const env = platformEnvironment((await testDatabase()).url);
  const args = ['admin', 'migrate', 'status'];
  const inImage = start(env, args, imageFolder());
  expect(await inImage.ended, inImage.output()).toBe(0);
  const inClone = start(env, args);
  expect(await inClone.ended).toBe(1);
  expect(inClone.output()).toContain('HELIOGRAPH_DATABASE_URL is not set');
});
