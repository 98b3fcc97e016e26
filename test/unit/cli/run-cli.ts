import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { onTestFinished } from 'vitest';
import { run } from '../../../clients/cli/src/run.ts';
import { listenInTest } from '../../support/listen.ts';

/** A directory that is there for one test. */
export function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'heliograph-cli-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export type CliResult = { exitCode: number; stdout: string; stderr: string };

/** Runs a command line in this process, with nothing of this machine's profile. */
export async function runCommand(
  args: readonly string[],
  given: Record<string, string> = {},
  input = '',
): Promise<CliResult> {
  const written = { stdout: '', stderr: '' };
  const into = (name: keyof typeof written) =>
    new Writable({
      write(piece, _encoding, done) {
        written[name] += piece;
        done();
      },
    }) as unknown as NodeJS.WriteStream;
  const stdin = Readable.from(input === '' ? [] : [input]) as unknown as NodeJS.ReadStream & { fd: 0 };
  const env = { HELIOGRAPH_CONFIG_DIR: directory(), ...given };
  const streams = {
    stdin,
    stdout: into('stdout') as NodeJS.WriteStream & { fd: 1 },
    stderr: into('stderr') as NodeJS.WriteStream & { fd: 2 },
  };
  return { exitCode: await run(args, { ...streams, env }), ...written };
}

/** A server at an address of this machine that keeps what it was asked. */
export async function serverOf(listener: RequestListener) {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    listener(request, response);
  });
  const port = await listenInTest(server);
  return { url: `http://127.0.0.1:${port}`, requests };
}

/** A service that responds to each path with its JSON, and to others with `{}`. */
export async function serviceOf(responses: Readonly<Record<string, unknown>>) {
  return await serverOf(({ url = '' }, response) => {
    const path = url.split('?')[0] ?? '';
    response.setHeader('content-type', 'application/json').end(JSON.stringify(responses[path] ?? {}));
  });
}

const KEY = `ck_${'a1'.repeat(32)}`;

/** Runs a command line for a service with these responses; `bodies` are what it was sent, `texts` the same to the letter. */
export async function runFor(
  args: readonly string[],
  responses: Readonly<Record<string, unknown>>,
  more = {},
) {
  const bodies: Record<string, unknown> = {};
  const texts: string[] = [];
  const urls: string[] = [];
  const { url } = await serverOf(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const path = request.url?.split('?')[0] ?? '';
    texts.push(text);
    urls.push(request.url ?? '');
    if (text !== '') bodies[path] = JSON.parse(text);
    const given = responses[path];
    const [status, body] = Array.isArray(given) ? given : [200, given ?? {}];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const env = { HELIOGRAPH_URL: url, HELIOGRAPH_API_KEY: KEY, ...more };
  return { ...(await runCommand(args, env)), bodies, texts, urls };
}
