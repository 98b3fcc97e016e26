import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { query } from '../../../src/platform/postgres/sql.ts';
import { signed, startTestApi } from './api-harness.ts';

const WEBHOOK = '/upstream/webhook';
const MIB = 1024 * 1024;

/** What fills 128 MiB to the last bytes: 47 large bodies, then ever smaller ones. */
const SIZES = [...Array<number>(47).fill(3 * MIB - 1), ...halves(MIB), ...halves(MIB)];

/** Longer than the time after which a body must have come at the lowest rate. */
const LASTS_MS = 6_000;
/** On a busy machine they take longer than that. */
const LEAST_ANSWERS = 10;
const REFILL_EVERY_MS = 500;

/** Of a request without a body at the same time. A webhook that waits for unfinished bodies takes 5 s more. */
const ANSWERED_WITHIN_MS = 4_000;

type Way = { name: string; addressOf: (index: number) => string; isChunked: boolean };

const WAYS: Way[] = [
  { name: 'of one address', addressOf: () => '127.0.0.1', isChunked: false },
  { name: 'of as many addresses', addressOf: (index) => `127.0.1.${index + 1}`, isChunked: false },
  { name: 'without a length', addressOf: () => '127.0.0.1', isChunked: true },
];

test.each(WAYS)(
  'connections $name that hold unfinished bodies keep no genuine webhook waiting',
  async (way) => {
    const api = await startTestApi();
    const { port, hostname } = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
    const stop = new AbortController();
    const holding = holdUnfinishedBodies(Number(port), way, stop.signal);
    const answers: { status: number; ms: number; withoutBodyMs: number }[] = [];
    const timed = async (path: string, init?: RequestInit) => {
      const startedAt = performance.now();
      const status = await fetch(`http://${hostname}:${port}${path}`, init).then(
        (answer) => answer.status,
        () => 0,
      );
      return { status, ms: performance.now() - startedAt };
    };
    const post = async (body: Buffer) => {
      const init = { method: 'POST', headers: signed(body), body: new Uint8Array(body) };
      const [answer, withoutBody] = await Promise.all([timed(WEBHOOK, init), timed('/healthz')]);
      answers.push({ ...answer, withoutBodyMs: withoutBody.ms });
    };
    const until = Date.now() + LASTS_MS;
    for (let count = 0; Date.now() < until || count < LEAST_ANSWERS; count += 1) {
      await post(randomBytes(count % 10 === 9 ? 3 * MIB : 800));
      await sleep(30);
    }
    stop.abort();
    await holding;
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    const waits = answers.map(({ ms, withoutBodyMs }) => ms - withoutBodyMs);
    expect(Math.max(...waits)).toBeLessThan(ANSWERED_WITHIN_MS);
    const [stored] = await query<{ count: string }>(api.database, 'select count(*) from inbox');
    expect(Number(stored?.count)).toBe(answers.length);
  },
);

test('a body that comes to a halt is answered 408, and its connection ends', async () => {
  const api = await startTestApi();
  const { port } = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
  const socket = openBody(Number(port), { sizeBytes: 1_000, address: '127.0.0.1', isChunked: false });
  let answer = '';
  socket.on('data', (chunk) => {
    answer += String(chunk);
  });
  await new Promise((resolve) => socket.once('close', resolve));
  expect(answer).toMatch(/^HTTP\/1.1 408 /);
  expect(answer).toContain('"code":"request_timeout"');
});

test('a form of the portal that comes to a halt is answered 408 too', async () => {
  const api = await startTestApi();
  const { port } = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
  const head = `POST /portal/sign-in HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nOrigin: http://127.0.0.1:${port}\r\n`;
  const socket = connect(Number(port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(`${head}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nemail=`);
  let answer = '';
  socket.on('data', (chunk) => {
    answer += String(chunk);
  });
  await new Promise((resolve) => socket.once('close', resolve));
  expect(answer).toMatch(/^HTTP\/1.1 408 /);
});

test('a header without the form of a signature, or a length beyond 3 MiB, is refused before any of the body', async () => {
  const api = await startTestApi();
  const { port } = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
  const answerTo = async (signature: string, length: number) => {
    const socket = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(
      `POST ${WEBHOOK} HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: ${signature}\r\nContent-Length: ${length}\r\n\r\n`,
    );
    return await new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))));
  };
  for (const malformed of ['sha256=00', 'x', `sha1=${'0'.repeat(64)}`, `sha256=${'A'.repeat(64)}`]) {
    expect(await answerTo(malformed, 1_000)).toMatch(/^HTTP\/1.1 401 /);
  }
  expect(await answerTo(`sha256=${'0'.repeat(64)}`, 3 * MIB + 1)).toMatch(/^HTTP\/1.1 413 /);
  expect(await answerTo(`sha256=${'0'.repeat(64)}`, 1024 * MIB)).toMatch(/^HTTP\/1.1 413 /);
});

/** Opens again, twice a second, what was closed. */
async function holdUnfinishedBodies(port: number, way: Way, signal: AbortSignal): Promise<void> {
  const open = SIZES.map((): Socket | null => null);
  while (!signal.aborted) {
    for (const [index, sizeBytes] of SIZES.entries()) {
      if (open[index]?.destroyed === false) continue;
      open[index] = openBody(port, {
        sizeBytes,
        address: way.addressOf(index),
        isChunked: way.isChunked,
      });
    }
    await sleep(REFILL_EVERY_MS);
  }
  for (const socket of open) socket?.destroy();
}

const FILLING = Buffer.alloc(3 * MIB);

/** A request whose body lacks its last byte. */
function openBody(
  port: number,
  { sizeBytes, address, isChunked }: { sizeBytes: number; address: string; isChunked: boolean },
): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: address });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  const length = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${sizeBytes}`;
  const head = `POST ${WEBHOOK} HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=${'0'.repeat(64)}\r\n${length}\r\n\r\n`;
  socket.write(isChunked ? `${head}${sizeBytes.toString(16)}\r\n` : head);
  socket.write(FILLING.subarray(0, sizeBytes - 1));
  socket.resume();
  return socket;
}

function halves(sizeBytes: number): number[] {
  return sizeBytes < 256 ? [] : [sizeBytes, ...halves(sizeBytes / 2)];
}
