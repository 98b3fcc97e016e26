import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import { type ShippedProxy, startShippedProxy } from '../../support/shipped-proxy.ts';
import { BUILD_TIMEOUT_MS, goProgram } from '../../unit/deployment/go-programs.ts';
import { NUMBER, startTestApi, testConfig, WABA } from '../api/api-harness.ts';
import { addReceivedFile } from '../messages/media/received-file.ts';

beforeAll(async () => void (await goProgram('caddy')), BUILD_TIMEOUT_MS);

/** More than lies between the object store and a client that reads nothing, with the proxy between them. */
const FILE_BYTES = 64 * 1024 * 1024;

/** The grace of a client that reads too slowly is 10 s at the API, from when all between them is full. */
const CUT_WITHIN_MS = 60_000;
const BYTE_EVERY_MS = 1_000;

test('a client that reads a byte a second of a file is cut behind the proxy too', async () => {
  const config = testConfig({ HELIOGRAPH_TRUST_PROXY: '127.0.0.1' });
  const objectStore = openObjectStore(config.objectStore);
  onTestFinished(() => objectStore.close());
  const { app, database } = await startTestApi(async () => ({ config, objectStore }));
  const file = { wabaId: WABA, number: NUMBER, sizeBytes: FILE_BYTES };
  const path = await addReceivedFile({ database, store: objectStore }, file);
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const proxy = await startShippedProxy(Number(port));
  let underWay = 0;
  app.server.on('request', ({ url }, response) => {
    if (url !== path) return;
    underWay += 1;
    response.once('close', () => {
      underWay -= 1;
    });
  });
  const readers = [overHttp1(proxy, path), await overHttp2(proxy, path)];
  const bytesRead = readers.map(trickle);
  await expect.poll(() => underWay).toBe(2);
  await expect.poll(() => underWay, { timeout: CUT_WITHIN_MS }).toBe(0);
  expect(bytesRead.map((count) => count() > 0)).toEqual([true, true]);
  // Nothing holds the client up now, so all of the file would come if it had not been cut.
  for (const bytes of await Promise.all(readers.map(readRest))) expect(bytes).toBeLessThan(FILE_BYTES);
});

function overHttp1({ httpPort }: ShippedProxy, path: string): Duplex {
  const socket = connect(httpPort, '127.0.0.1');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  return watched(socket);
}

async function overHttp2({ httpsPort }: ShippedProxy, path: string): Promise<Duplex> {
  // The proxy makes its certificate beside its start.
  await expect.poll(() => openSession(httpsPort)).not.toBeNull();
  const session = await openSession(httpsPort);
  if (session === null) throw new Error('the proxy does not speak https');
  return watched(session.request({ ':path': path }));
}

async function openSession(port: number): Promise<ClientHttp2Session | null> {
  const session = connectHttp2(`https://localhost:${port}`, { rejectUnauthorized: false });
  onTestFinished(() => session.destroy());
  return await new Promise((resolve) => {
    session.once('connect', () => resolve(session));
    session.on('error', () => resolve(null));
  });
}

function watched<Stream extends Duplex>(stream: Stream): Stream {
  onTestFinished(() => void stream.destroy());
  return stream.on('error', () => {});
}

/** Reads a byte now and then; returns how many it has read. */
function trickle(stream: Duplex): () => number {
  let bytes = 0;
  stream.on('readable', () => {});
  const timer = setInterval(() => {
    if (stream.read(1) !== null) bytes += 1;
  }, BYTE_EVERY_MS);
  onTestFinished(() => clearInterval(timer));
  return () => bytes;
}

/** How many bytes come until the end. */
async function readRest(stream: Duplex): Promise<number> {
  let bytes = 0;
  if (stream.closed) return bytes;
  const closed = new Promise((resolve) => stream.once('close', resolve));
  stream.removeAllListeners('readable');
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  await closed;
  return bytes;
}
