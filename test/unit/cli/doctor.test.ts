import { createServer, type IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { examine, exitCodeOf } from '../../../clients/cli/src/doctor.ts';
import { diagnose } from '../../../clients/cli/src/verify.ts';
import { listenInTest } from '../../support/listen.ts';

const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

type Answer = (request: IncomingMessage, body: Buffer) => number | null;

async function receiver(answer: Answer): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const status = answer(request, Buffer.concat(chunks));
    if (status === null) return;
    if (status === 301) response.setHeader('location', 'https://elsewhere.example/');
    response.writeHead(status).end();
  });
  const port = await listenInTest(server);
  return `http://127.0.0.1:${port}/hook`;
}

const isSigned = (request: IncomingMessage, body: Buffer) =>
  diagnose(SECRET, body, request.headers as Record<string, string>).isValid;

async function outcomes(url: string, secret: string | null = SECRET, timeoutMs = 5_000) {
  const findings = await examine({ url, secret, timeoutMs }, () => {});
  return {
    exitCode: exitCodeOf(findings),
    text: findings.map(({ check, outcome, detail }) => `${outcome} ${check}: ${detail}`).join('\n'),
  };
}

test('finds nothing wrong with a receiver that verifies and deduplicates', async () => {
  const seen = new Set<unknown>();
  const url = await receiver((request, body) => {
    if (!isSigned(request, body)) return 401;
    seen.add(request.headers['webhook-id']);
    return 204;
  });
  const { exitCode, text } = await outcomes(url);
  expect([exitCode, text]).toEqual([0, expect.not.stringContaining('failed')]);
  expect(text.match(/ok signature/g)).toHaveLength(4);
  expect(text).toContain('ok duplicates');
  expect(seen.size).toBe(2);
});

test.each<[string, Answer, string]>([
  ['accepts every signature', () => 200, 'failed signature: a signature by another secret is accepted'],
  [
    'ignores the age of a request',
    (request, body) => {
      const fresh = { ...request.headers, now: Number(request.headers['webhook-timestamp']) * 1_000 };
      return diagnose(SECRET, body, request.headers as Record<string, string>, fresh.now).isValid ? 200 : 401;
    },
    'failed signature: a signature that is an hour old is accepted',
  ],
  ['verifies with another secret', () => 401, 'failed response: HTTP 401 for a valid request'],
  ['redirects', () => 301, 'failed response: it redirects to https://elsewhere.example/'],
  [
    'refuses repeated ids',
    (() => {
      const seen = new Set<unknown>();
      return (request, body) => {
        if (!isSigned(request, body)) return 401;
        const id = request.headers['webhook-id'];
        if (seen.has(id)) return 409;
        seen.add(id);
        return 200;
      };
    })(),
    'failed duplicates: a repeated webhook-id gets HTTP 409',
  ],
])('finds a receiver that %s', async (_name, answer, finding) => {
  const { exitCode, text } = await outcomes(await receiver(answer));
  expect([exitCode, text]).toEqual([1, expect.stringContaining(finding)]);
});

test('says when nothing listens, when there is no response in time and when a host has no address', async () => {
  const url = await receiver(() => null);
  expect((await outcomes(url, SECRET, 300)).text).toContain('failed reachable: no response in time');
  expect((await outcomes('http://127.0.0.1:9/')).text).toContain('failed reachable: ');
  expect((await outcomes('https://nothing.invalid/')).text).toContain(
    'failed name: nothing.invalid has no address',
  );
});

test('without a secret it says that it cannot sign, and fails a receiver that accepts anything', async () => {
  expect((await outcomes(await receiver(() => 401), null)).exitCode).toBe(0);
  expect((await outcomes(await receiver(() => 200), null)).text).toContain('failed signature');
});
