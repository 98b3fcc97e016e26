import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { newApiKey } from '../../../src/features/keys/api-key.ts';
import { stdioClient } from './mcp-clients.ts';

const MAIN_SCRIPT = fileURLToPath(new URL('../../../clients/cli/src/main.ts', import.meta.url));
const URL_ENVIRONMENT = { HELIOGRAPH_URL: 'http://127.0.0.1:9' };

function start(environment: Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, [MAIN_SCRIPT, 'mcp', ...args], {
    env: { PATH: process.env.PATH ?? '', HELIOGRAPH_CONFIG_DIR: '/nowhere', ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (output.stdout += chunk));
  child.stderr.on('data', (chunk) => (output.stderr += chunk));
  return { child, output };
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null) await once(child, 'exit');
  return child.exitCode;
}

test('without a URL or a key it ends, says what is missing, and writes nothing to the protocol', async () => {
  const key = newApiKey();
  for (const [environment, words, exitCode] of [
    [{}, 'HELIOGRAPH_URL', 3],
    [{ HELIOGRAPH_URL: 'ftp://gateway.example' }, 'https://gateway.example', 2],
    [{ HELIOGRAPH_URL: 'https://user:secret@gateway.example' }, 'https://gateway.example', 2],
    [URL_ENVIRONMENT, 'HELIOGRAPH_API_KEY', 3],
    [{ ...URL_ENVIRONMENT, HELIOGRAPH_API_KEY: `${key}0` }, '64 hexadecimal digits', 2],
  ] as const) {
    const { child, output } = start(environment);
    expect([await exitOf(child), output.stdout]).toEqual([exitCode, '']);
    expect(output.stderr).toContain(words);
    expect(output.stderr).not.toMatch(new RegExp(`secret|${key}`));
  }
});

test('the key comes from a file, too', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-key-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'key');
  await writeFile(path, `${newApiKey()}\n`);
  const mcp = await stdioClient({}, ['--url', 'http://127.0.0.1:9/', '--key-file', path]);
  expect((await mcp.client.listTools()).tools.length).toBeGreaterThan(10);
  await mcp.close();
});

test('it ends with its client', async () => {
  const { child, output } = start({ ...URL_ENVIRONMENT, HELIOGRAPH_API_KEY: newApiKey() });
  child.stdin?.end();
  expect([await exitOf(child), output.stdout, output.stderr]).toEqual([0, '', '']);
});

test('with --http it listens on this machine alone, without a key, until a signal ends it', async () => {
  const { child, output } = start(URL_ENVIRONMENT, '--http', '0');
  await expect.poll(() => output.stderr).toMatch(/listens at http:\/\/127\.0\.0\.1:\d+\/mcp/);
  const [, address = ''] = /listens at (\S+)/.exec(output.stderr) ?? [];
  expect((await fetch(address, { method: 'POST' })).status).toBe(401);
  child.kill('SIGTERM');
  expect(await exitOf(child)).toBe(0);
});
