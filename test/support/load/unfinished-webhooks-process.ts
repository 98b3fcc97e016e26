import { connect as connectHttp2, constants } from 'node:http2';
import { connect } from 'node:net';
import { setPriority, constants as system } from 'node:os';
import type { UnfinishedWebhooks } from './unfinished-webhooks.ts';

const PATH = '/upstream/webhook';
const STREAMS_PER_CONNECTION = 100;
const TRICKLE_EVERY_MS = 200;

/** More than a fast line would measure how these processes share a processor. */
const LINE_BYTES_PER_MS = (50 * 1024 * 1024) / 1_000;
const PIECE = Buffer.alloc(16 * 1024);

setPriority(system.priority.PRIORITY_LOW);

const { port, count, signature, lengthBytes, manner, isHttp2 } = JSON.parse(
  process.argv[2] ?? '',
) as UnfinishedWebhooks;
const headers = {
  ...(signature !== null && { 'X-Hub-Signature-256': signature }),
  'Content-Length': String(lengthBytes),
};

const hasEnded = () => process.send?.('ended');

type Body = {
  readonly writableLength: number;
  write(bytes: Buffer): unknown;
  once(event: 'close', listener: () => void): unknown;
};

/** How much of each body is still to be sent. */
const unsent = new Map<Body, number>();

function sendBody(body: Body): void {
  if (manner === 'fast') {
    unsent.set(body, lengthBytes - 1);
    body.once('close', () => unsent.delete(body));
    return;
  }
  const timer = setInterval(() => body.write(Buffer.alloc(1)), TRICKLE_EVERY_MS);
  body.once('close', () => clearInterval(timer));
}

/** Sends a piece of each body in turn, as far as the line has room. */
function fillLine(): void {
  const beganMs = performance.now();
  let sentBytes = 0;
  setInterval(() => {
    const roomBytes = (performance.now() - beganMs) * LINE_BYTES_PER_MS;
    for (const [body, leftBytes] of unsent) {
      if (sentBytes >= roomBytes) return;
      if (body.writableLength > 0) continue;
      const piece = PIECE.subarray(0, leftBytes);
      body.write(piece);
      sentBytes += piece.length;
      unsent.delete(body);
      if (leftBytes > piece.length) unsent.set(body, leftBytes - piece.length);
    }
  }, 5);
}

function openOverHttp1(): void {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  // The proxy keeps the connection for further requests, if it has kept up with the body.
  socket.once('data', () => socket.destroy()).once('close', hasEnded);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST ${PATH} HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}\r\n`);
  sendBody(socket);
}

function openOverHttp2(): void {
  const session = connectHttp2(`https://localhost:${port}`, { rejectUnauthorized: false });
  session.on('error', () => {});
  for (let n = 0; n < STREAMS_PER_CONNECTION; n += 1) {
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: 'POST',
      [constants.HTTP2_HEADER_PATH]: PATH,
      ...headers,
    });
    stream.on('error', () => {}).once('response', () => stream.close());
    stream.once('close', hasEnded);
    sendBody(stream.resume());
  }
}

if (isHttp2) for (let n = 0; n < count; n += STREAMS_PER_CONNECTION) openOverHttp2();
else for (let n = 0; n < count; n += 1) openOverHttp1();
fillLine();
