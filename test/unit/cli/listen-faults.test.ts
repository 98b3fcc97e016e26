import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { listenInTest } from '../../support/listen.ts';

/** `heliograph listen` in a process, before a service of the test that has as many events as it wants. */
const MAIN = fileURLToPath(new URL('../../../clients/cli/src/main.ts', import.meta.url));
const KEY = `ck_${'0'.repeat(64)}`;

const directory = () => {
  const path = mkdtempSync(join(tmpdir(), 'heliograph-listen-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

async function portOf(server: Server): Promise<number> {
  const port = await listenInTest(server);
  return port;
}

const eventOf = (n: number, createdAt: string, filling: string) =>
  JSON.stringify({
    id: `evt_${String(n).padStart(32, '0')}`,
    eventType: 'message',
    eventId: `wamid.${n % 50}`,
    phoneNumberId: '800000000000111',
    sequence: n,
    createdAt,
    occurredAt: createdAt,
    body: { n, filling },
  });

/** The stream of a service: `count` events, each an hour old, from the cursor of the request on. */
async function service(count: number, bodyBytes = 500) {
  const filling = 'x'.repeat(bodyBytes);
  const createdAt = new Date(Date.now() - 3_600_000).toISOString();
  let written = 0;
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://service');
    if (pathname.endsWith('/events')) {
      const data = Array.from({ length: 100 }, () => ({}));
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ data, hasMore: true }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': hello\n\n');
    const closed = once(response, 'close');
    const write = async (text: string) => {
      if (!response.write(text)) await Promise.race([once(response, 'drain'), closed]);
    };
    const from = Number(request.headers['last-event-id'] ?? 0);
    for (let n = from + 1; n <= count && !response.destroyed; n += 1) {
      written = n;
      await write(`id: ${n}\ndata: ${eventOf(n, createdAt, filling)}\n\n`);
    }
    // As the service does while nothing happens, only more often.
    const heartbeat = setInterval(() => response.write(`id: ${count}\n\n`), 100);
    await closed;
    clearInterval(heartbeat);
  });
  return { url: `http://127.0.0.1:${await portOf(server)}`, written: () => written };
}

/** The server of the developer: which events came, in their order. */
async function receiver(opened: Promise<void> = Promise.resolve()) {
  const numbers: number[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    numbers.push(JSON.parse(body).n);
    await opened;
    response.writeHead(204).end();
  });
  return { url: `http://127.0.0.1:${await portOf(server)}/hook`, numbers };
}

type Started = { child: ChildProcess; stderr(): string; stdout(): string; ended: Promise<number | null> };

function listen(
  url: string,
  forwardTo: string,
  home: string,
  extra: { args?: string[]; nodeArgs?: string[] } = {},
): Started {
  const { args = [], nodeArgs = [] } = extra;
  const env = {
    PATH: process.env.PATH,
    HELIOGRAPH_CONFIG_DIR: home,
    HELIOGRAPH_URL: url,
    HELIOGRAPH_API_KEY: KEY,
  };
  const child = spawn(process.execPath, [...nodeArgs, MAIN, 'listen', '--forward-to', forwardTo, ...args], {
    env,
  });
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      written[name] += text;
    });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, stdout: () => written.stdout, stderr: () => written.stderr, ended };
}

const SOON = { interval: 50 };

test('of 10,000 events that wait behind a server that hangs few are read; all arrive once each, in order per eventId, with progress', async () => {
  const gate = Promise.withResolvers<void>();
  const { url, written } = await service(10_000, 4_000);
  const [{ url: hook, numbers }, home] = [await receiver(gate.promise), directory()];
  const run = listen(url, hook, home);
  await expect.poll(() => numbers.length, SOON).toBe(10);
  let before = -1;
  for (; before !== written(); await sleep(500)) before = written();
  // 200 wait in the tool, the others in buffers of the connection: 40 MB would be all of them.
  expect(written()).toBeLessThan(3_000);
  gate.resolve();
  await expect.poll(run.stderr, SOON).toContain('Caught up: 10,000 earlier events were forwarded.');
  expect([numbers.length, new Set(numbers).size]).toEqual([10_000, 10_000]);
  const lanes = Map.groupBy(numbers, (n) => n % 50);
  for (const lane of lanes.values()) expect(lane).toEqual(lane.toSorted((a, b) => a - b));
  run.child.kill('SIGINT');
  expect(await run.ended).toBe(130);
});

test('a terminal that is closed ends the session; the next one offers what was missed, and goes on behind it', async () => {
  const [{ url }, { url: hook, numbers }, home] = [await service(2_000), await receiver(), directory()];
  const first = listen(url, hook, home);
  await expect.poll(() => numbers.length, SOON).toBeGreaterThan(200);
  first.child.kill('SIGHUP');
  expect(await first.ended).toBe(130);
  const before = numbers.length;
  expect(before).toBeLessThan(2_000);
  const offered = listen(url, hook, home, { args: ['--idle-exit', '1'] });
  await expect
    .poll(offered.stderr, SOON)
    .toContain('came since the last session. --resume forwards them too.');
  offered.child.kill('SIGKILL');
  await offered.ended;
  numbers.length = Math.min(numbers.length, before);
  const resumed = listen(url, hook, home, { args: ['--resume', '--idle-exit', '3'] });
  expect(await resumed.ended).toBe(0);
  expect(new Set(numbers).size).toBe(2_000);
  // Those that were under way when the terminal was closed may come again.
  expect(numbers.length).toBeLessThan(2_000 + 250);
});

test.each([
  [3_600_000, '60 minutes ahead of that of the service'],
  [-3_600_000, '60 minutes behind that of the service'],
])(
  'a clock that is off by %i ms is named, and what was missed is counted by the clock of the service',
  async (offMs, words) => {
    const [{ url }, { url: hook, numbers }, home] = [await service(20), await receiver(), directory()];
    const shift = join(home, 'shift.mjs');
    writeFileSync(shift, `const now = Date.now; Date.now = () => now() + ${offMs};\n`);
    const run = listen(url, hook, home, { nodeArgs: ['--import', shift] });
    await expect.poll(run.stderr, SOON).toContain(`the clock of this machine is ${words}`);
    await expect.poll(run.stderr, SOON).toContain('Caught up: 20 earlier events were forwarded.');
    expect(numbers).toHaveLength(20);
    run.child.kill('SIGTERM');
    await run.ended;
    const [session] = Object.values(JSON.parse(readFileSync(join(home, 'sessions.json'), 'utf8'))) as {
      at: string;
    }[];
    expect(Date.parse(session?.at ?? '')).toBeLessThanOrEqual(Date.now());
  },
);
