import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { ensureCertificate } from '../../../dev/embedded/certificate.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { listenInTest } from '../../support/listen.ts';
import { createTestDatabase } from '../../support/test-database.ts';
import { signed } from './api-harness.ts';

const MAIN = new URL('../../../src/main.ts', import.meta.url).pathname;

/** Runs `heliograph-server api` as operators do; resolves when both ports listen. */
const SECRET = 'secret-of-the-upstream-app';
const ENCRYPTION_KEY = Buffer.from(Array.from({ length: 32 }, (_, byte) => byte + 100)).toString('base64');

type Mode = 'production' | 'development';

async function spawnProcess(command: string, mode: Mode, settings: Record<string, string> = {}) {
  const { database, url, close } = await createTestDatabase();
  onTestFinished(close);
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-api-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const certificate = await ensureCertificate(directory);
  const { minioUrl, minioAccessKey, minioSecretKey } = inject('infrastructure');
  const child = spawn(process.execPath, [MAIN, command], {
    env: {
      PATH: process.env.PATH,
      HELIOGRAPH_MODE: mode,
      HELIOGRAPH_DATABASE_URL: url,
      HELIOGRAPH_OBJECT_STORE_URL: minioUrl,
      HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: minioAccessKey,
      HELIOGRAPH_OBJECT_STORE_SECRET_KEY: minioSecretKey,
      HELIOGRAPH_API_PORT: '0',
      HELIOGRAPH_HTTPS_PORT: '0',
      HELIOGRAPH_TLS_CERT_FILE: certificate.certPath,
      HELIOGRAPH_TLS_KEY_FILE: certificate.keyPath,
      HELIOGRAPH_PUBLIC_URL: 'https://127.0.0.1',
      HELIOGRAPH_UPSTREAM_APP_SECRETS: SECRET,
      HELIOGRAPH_UPSTREAM_VERIFY_TOKEN: 'verify-me',
      HELIOGRAPH_ENCRYPTION_KEYS: `k1:${ENCRYPTION_KEY}`,
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { child, database, ca: readFileSync(certificate.caPath) };
}

async function startProcess(mode: Mode, settings: Record<string, string> = {}) {
  const { child, ...rest } = await spawnProcess('api', mode, settings);
  child.stderr.pipe(process.stderr);
  const lines: string[] = [];
  const urls = await listeningUrls(child, lines);
  return { child, lines, ...rest, ...urls };
}

async function listeningUrls(
  child: ChildProcess,
  lines: string[],
): Promise<{ plain: string; secure: string }> {
  const urls: string[] = [];
  return await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout ?? process.stdin }).on('line', (line) => {
      lines.push(line);
      const url = /api listens at (https?:\/\/[^"\s]+)/.exec(line)?.[1];
      if (url !== undefined) urls.push(url);
      const [plain, secure] = urls;
      if (plain !== undefined && secure !== undefined) resolve({ plain, secure });
    });
    child.once('exit', (code) => reject(new Error(`api ended with ${code}: ${lines.join('\n')}`)));
  });
}

type Answer = { status: number; headers: http.IncomingHttpHeaders; body: string };

async function send(url: string, options: https.RequestOptions = {}, body?: Buffer): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const request = (url.startsWith('https:') ? https : http).request(
      url,
      { agent: false, ...options },
      (response) => {
        let text = '';
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

test('both ports serve everything, https with HSTS, and a stop ends the process cleanly', async () => {
  const { child, lines, plain, secure, ca, database } = await startProcess('development');
  expect(plain).toMatch(/^http:/);
  expect((await send(`${plain}/readyz`)).status).toBe(200);
  const answer = await send(`${secure}/api/external/test`, { ca });
  expect([answer.status, answer.body]).toEqual([200, '{"status":"ok"}']);
  expect(answer.headers['strict-transport-security']).toMatch(/^max-age=\d+$/);
  for (const [url, tls] of [
    [plain, {}],
    [secure, { ca }],
  ] as const) {
    const stored = await send(
      `${url}/upstream/webhook`,
      { method: 'POST', headers: signed('x', SECRET), ...tls },
      Buffer.from('x'),
    );
    expect(stored.status).toBe(200);
  }
  expect(await query(database, 'select id from inbox')).toHaveLength(2);
  child.kill('SIGINT');
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  expect(code).toBe(0);
  expect(lines.every((line) => line.startsWith('{'))).toBe(true);
  expect(lines.join('\n')).not.toMatch(new RegExp(`${SECRET}|verify-me|${ENCRYPTION_KEY.slice(0, 8)}`));
});

test('operators have a port of their own where that is set, and production tells browsers to keep to https', async () => {
  const listen = { HELIOGRAPH_PORTAL_OPERATOR_LISTEN: '127.0.0.1:0' };
  const { plain, secure, ca, lines } = await startProcess('production', listen);
  const operators = await vi.waitUntil(() => {
    const urls = lines.map((line) => /api listens at (http:\/\/[^"\s]+)/.exec(line)?.[1]);
    return urls.find((url) => url !== undefined && url !== plain);
  }, 120_000);
  const pages = [`${operators}/portal/operator/health`, `${plain}/portal/operator/health`];
  const [own, other] = await Promise.all(pages.map((url) => send(url)));
  expect([own?.status, own?.headers.location?.split('?')[0]]).toEqual([303, '/portal/sign-in']);
  expect(other?.status).toBe(404);
  expect((await send(`${secure}/portal/operator/health`, { ca })).status).toBe(404);
  expect(other?.headers['strict-transport-security']).toBe('max-age=31536000; includeSubDomains');
});

const TAKEN = 'is taken by another program';

test.each([
  ['api', 'HELIOGRAPH_API_PORT', TAKEN],
  ['api', 'HELIOGRAPH_HTTPS_PORT', TAKEN],
  ['api', 'HELIOGRAPH_API_METRICS_PORT', TAKEN],
  ['api', 'HELIOGRAPH_PORTAL_OPERATOR_LISTEN', TAKEN],
  ['all', 'HELIOGRAPH_API_PORT', TAKEN],
  ['worker', 'HELIOGRAPH_WORKER_HEALTH_PORT', TAKEN],
  ['api', 'HELIOGRAPH_API_HOST', 'is no address of this machine'],
])('%s ends with a sentence where it cannot listen: %s %s', async (command, name, reason) => {
  const other = http.createServer();
  const port = String(await listenInTest(other));
  const isHost = name === 'HELIOGRAPH_API_HOST';
  const value = isHost ? '192.0.2.1' : name.endsWith('_LISTEN') ? `127.0.0.1:${port}` : port;
  const settings = { HELIOGRAPH_API_HOST: '127.0.0.1', [name]: value };
  const { child } = await spawnProcess(command, 'development', settings);
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  child.stdout.resume();
  const [code] = await once(child, 'exit');
  const setting = isHost ? 'HELIOGRAPH_API_PORT' : name;
  expect(said).toMatch(new RegExp(`^Cannot listen at \\S+ \\(${setting}\\): it ${reason}\\.\n$`));
  expect(code).toBe(2);
});

test('a stop says not ready first, lets requests under way finish, and ends with what was acknowledged kept', async () => {
  const { child, lines, plain, database } = await startProcess('production');
  const body = Buffer.alloc(100_000, 'x');
  const slow = new Promise<Answer>((resolve, reject) => {
    const options = {
      method: 'POST',
      agent: false,
      headers: { ...signed(body, SECRET), 'content-length': body.length },
    };
    const request = http.request(`${plain}/upstream/webhook`, options, (response) => {
      response.resume();
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: '' }),
      );
    });
    request.on('error', reject);
    request.write(body.subarray(0, 50_000));
    setTimeout(() => request.end(body.subarray(50_000)), 4_000);
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  child.kill('SIGTERM');
  await expect.poll(async () => (await send(`${plain}/readyz`)).status).toBe(503);
  expect((await send(`${plain}/healthz`)).status).toBe(200);
  expect((await slow).status).toBe(200);
  const [code] = await once(child, 'exit');
  expect(code).toBe(0);
  expect(await query(database, 'select id from inbox')).toHaveLength(1);
  // The server of the tests is one that a crash may harm, and whoever runs it so is told.
  expect(lines.join('\n')).toContain('"settings":["fsync"]');
});
