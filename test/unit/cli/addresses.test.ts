import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { directory, runCommand, serverOf, serviceOf } from './run-cli.ts';

const KEY = `ck_${'a1'.repeat(32)}`;
const OTHER_KEY = `ck_${'b2'.repeat(32)}`;

const IDENTITY = { businessName: 'Store', wabaId: '1', userId: 1, phoneNumbers: [] };
const SERVICE = {
  '/me': IDENTITY,
  '/api/external/key': { prefix: 'ck_a1', lastFour: 'a1a1', name: 'k', scopes: ['read'], expiresAt: null },
  '/api/external/events': { data: [], hasMore: false, nextCursor: null },
};

/** The environment of a user who has logged in to a service. */
async function loggedIn() {
  const service = await serviceOf(SERVICE);
  const env = { HELIOGRAPH_CONFIG_DIR: directory() };
  const login = await runCommand(['login', '--url', service.url], env, `${KEY}\n`);
  expect(login).toMatchObject({ exitCode: 0 });
  return { env, service };
}

const keysOf = ({ requests }: { requests: readonly IncomingMessage[] }) =>
  requests.map(({ headers }) => headers.authorization);

describe('the stored key', () => {
  test.each([
    ['--url', (url: string) => ({ args: ['--url', url], env: {} })],
    ['HELIOGRAPH_URL', (url: string) => ({ args: [], env: { HELIOGRAPH_URL: url } })],
  ])('goes to no other service that %s names', async (_name, named) => {
    const { env } = await loggedIn();
    const other = await serviceOf(SERVICE);
    for (const command of [['whoami'], ['events'], ['tail'], ['listen', '--forward-to', '3000'], ['mcp']]) {
      const given = named(other.url);
      const result = await runCommand([...command, ...given.args], { ...env, ...given.env });
      expect([command, result.exitCode, result.stderr]).toEqual([
        command,
        3,
        expect.stringContaining(`not sent to ${other.url}`),
      ]);
      expect(result.stderr + result.stdout).not.toContain(KEY);
    }
    expect(other.requests).toEqual([]);
  });

  test('goes to the service of its login, whatever the path', async () => {
    const { env, service } = await loggedIn();
    expect(await runCommand(['whoami', '--url', `${service.url}/`], env)).toMatchObject({ exitCode: 0 });
    expect(new Set(keysOf(service))).toEqual(new Set([`Bearer ${KEY}`]));
  });

  test('gives way to one that was given for the other service', async () => {
    const { env } = await loggedIn();
    const other = await serviceOf(SERVICE);
    const file = join(directory(), 'key');
    writeFileSync(file, `${OTHER_KEY}\r\n`);
    const byEnvironment = { ...env, HELIOGRAPH_API_KEY: `${OTHER_KEY}\n` };
    expect(await runCommand(['whoami', '--url', other.url], byEnvironment)).toMatchObject({ exitCode: 0 });
    const byFile = await runCommand(['whoami', '--url', other.url, '--key-file', file], env);
    expect(byFile).toMatchObject({ exitCode: 0 });
    expect(new Set(keysOf(other))).toEqual(new Set([`Bearer ${OTHER_KEY}`]));
  });
});

describe('an address', () => {
  test.each([
    ['gateway.example', 'https://gateway.example'],
    ['127.0.0.1:32000', 'http://127.0.0.1:32000'],
    ['localhost:32000', 'http://localhost:32000'],
    ['gateway.example:8080/base', 'https://gateway.example:8080/base'],
    ['"https://gateway.example"', 'quote'],
    ["'https://gateway.example'", 'quote'],
    ['https://gateway.example ', 'space'],
    [' https://gateway.example', 'space'],
    ['https://gateway.example/\n', 'line break'],
    ['https://user:pass@gateway.example', 'without a user'],
    ['https://gateway.example/?x=1', 'without a user'],
    ['ftp://gateway.example', 'https://gateway.example'],
    ['http://gateway.example', 'write https://'],
    ['http://127.evil.example', 'write https://'],
    ['http://localhost.evil.example', 'write https://'],
    ['https://', 'https://gateway.example'],
    ['gateway', 'https://gateway'],
    ['://', 'https://gateway.example'],
  ])('%j is refused in one sentence at every door', async (address, words) => {
    const key = { HELIOGRAPH_API_KEY: KEY };
    const doors = [
      runCommand(['whoami', '--url', address], key),
      runCommand(['whoami'], { ...key, HELIOGRAPH_URL: address }),
      runCommand(['events', '--url', address], key),
      runCommand(['listen', '--url', address, '--forward-to', 'http://localhost:3000/', '--new-only'], key),
      runCommand(['tail', '--url', address], key),
      runCommand(['mcp', '--url', address], key),
      runCommand(['mcp', '--http', '0', '--url', address]),
      runCommand(['login', '--url', address], {}, KEY),
      runCommand(['login'], { HELIOGRAPH_URL: address }, KEY),
    ];
    for (const { exitCode, stderr, stdout } of await Promise.all(doors)) {
      expect([exitCode, stdout]).toEqual([2, '']);
      expect(stderr).toContain(words);
      expect(stderr.trim().split('\n')).toHaveLength(1);
      expect(stderr).not.toContain(KEY);
    }
  });

  test.each([
    'server.example/hook',
    '"http://localhost:3000/"',
    'http://localhost:3000/ ',
    'localhost:3000',
    '99999999',
  ])('of a receiver, too: %j', async (address) => {
    const env = { HELIOGRAPH_URL: 'https://gateway.example', HELIOGRAPH_API_KEY: KEY };
    for (const args of [
      ['listen', '--forward-to', address, '--new-only'],
      ['doctor', address],
    ]) {
      const { exitCode, stderr } = await runCommand(args, env);
      expect([args[0], exitCode, stderr.trim().split('\n').length]).toEqual([args[0], 2, 1]);
    }
  });
});

describe('a key', () => {
  test.each([
    'ck_1',
    `${KEY}0`,
    `${KEY.slice(0, 40)}\n${KEY.slice(40)}`,
    `"${KEY}"`,
    'whsec_x',
    `Bearer ${KEY}`,
  ])('%j is refused, and not shown', async (key) => {
    const file = join(directory(), 'key');
    writeFileSync(file, key);
    const url = ['--url', 'http://127.0.0.1:9'];
    for (const result of [
      await runCommand(['whoami', ...url], { HELIOGRAPH_API_KEY: key }),
      await runCommand(['whoami', ...url, '--key-file', file]),
      await runCommand(['login', ...url], {}, key),
      await runCommand(['login', ...url, '--key-file', file]),
    ]) {
      expect([result.exitCode, result.stdout]).toEqual([2, '']);
      expect(result.stderr).not.toContain(key.slice(0, 20));
    }
  });

  test.each([' ', '\n', '\r\n', '\t'])('has %j around it and works', async (around) => {
    const service = await serviceOf(SERVICE);
    const env = { HELIOGRAPH_API_KEY: `${around}${KEY}${around}`, HELIOGRAPH_URL: service.url };
    expect(await runCommand(['whoami'], env)).toMatchObject({ exitCode: 0 });
    expect(new Set(keysOf(service))).toEqual(new Set([`Bearer ${KEY}`]));
  });
});

describe('what is no Heliograph', () => {
  const COMMANDS = [
    ...[['whoami'], ['events'], ['events', 'evt_1'], ['deliveries'], ['deliveries', 'evt_1'], ['endpoints']],
    ...[
      ['retry', 'dlv_1'],
      ['retry', '--endpoint', '1'],
      ['replay', 'evt_1'],
      ['replay', '--since', '2h'],
    ],
    ...[['trigger', 'status', '--to', '1'], ['trigger', 'status'], ['tail']],
    ...[
      ['send', '--to', '+12025550143', '--text', 'x'],
      ['listen', '--forward-to', '9', '--resume'],
    ],
  ];

  test('is named in a sentence, whatever JSON it sends', async () => {
    const body = fc.oneof(
      fc.json({ maxDepth: 3 }),
      fc.constantFrom('[]', '{"data":[]}', '{"data":[{}]}', '{"data":{}}', '{"data":[null]}', 'null', '1'),
    );
    await fc.assert(
      fc.asyncProperty(body, fc.constantFrom(...COMMANDS), async (json, command) => {
        const { url } = await serverOf((_request, response) =>
          response.setHeader('content-type', 'application/json').end(json),
        );
        const result = await runCommand([...command, '--url', url], { HELIOGRAPH_API_KEY: KEY });
        expect([0, 2, 4]).toContain(result.exitCode);
        expect(result.stderr).not.toMatch(/^ +at /m);
        if (result.exitCode === 4) expect(result.stderr).toMatch(/but not as Heliograph/);
      }),
      { numRuns: 150 },
    );
  }, 120_000);

  test.each(COMMANDS)('a page of HTML ends %s %s', async (...command) => {
    for (const status of [200, 404]) {
      const { url } = await serverOf((_request, response) =>
        response.writeHead(status, { 'content-type': 'text/html' }).end('<html>It works!</html>'),
      );
      const result = await runCommand([...command, '--url', url], { HELIOGRAPH_API_KEY: KEY });
      expect([result.exitCode, result.stderr]).toEqual([
        4,
        expect.stringMatching(/but not as Heliograph.*is the URL right/),
      ]);
    }
  });
});
