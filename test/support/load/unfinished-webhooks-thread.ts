import { connect as connectHttp2, constants } from 'node:http2';
import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import type { UnfinishedWebhooks } from './unfinished-webhooks.ts';

const PATH = '/upstream/webhook';
const STREAMS_PER_CONNECTION = 100;
const TRICKLE_EVERY_MS = 200;

const { port, count, signature, lengthBytes, manner, isHttp2 } = workerData as UnfinishedWebhooks;
const headers = {
  ...(signature !== null && { 'X-Hub-Signature-256': signature }),
  'Content-Length': String(lengthBytes),
};
const allButOneByte = Buffer.alloc(lengthBytes - 1);

const hasEnded = () => parentPort?.postMessage('ended');

type Body = { write(bytes: Buffer): unknown; once(event: 'close', listener: () => void): unknown };

function sendBody(body: Body): void {
  if (manner === 'fast') {
    body.write(allButOneByte);
    return;
  }
  const timer = setInterval(() => body.write(Buffer.alloc(1)), TRICKLE_EVERY_MS);
  body.once('close', () => clearInterval(timer));
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
