import { createHash, randomBytes } from 'node:crypto';
import { get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import fastify, { type FastifyInstance, type InjectOptions } from 'fastify';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { receivedMediaRoutes } from '../../../../src/api/messages/received-media/received-media.ts';
import { addErrorHandling, makeErrorSender } from '../../../../src/api/plugins/errors.ts';
import { addBaseHeaders } from '../../../../src/api/plugins/request-hooks.ts';
import { markMediaStored, takePendingMedia } from '../../../../src/features/messages/media/media.ts';
import { servedType } from '../../../../src/features/messages/media/media-type.ts';
import { makeMediaUrls } from '../../../../src/features/messages/media/media-urls.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { type ObjectStore, openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { freshTenant, testSecretBox } from '../../../support/test-accounts.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { messageBody } from './media-stack.ts';

const PUBLIC_URL = 'https://gateway.example';
const JPEG = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), randomBytes(5_000)]);
const UNKNOWN_TOKEN = 'A'.repeat(32);

let database: TestDatabase;
let objectStore: ObjectStore;
let app: FastifyInstance;

function makeApp(store: ObjectStore, db: Database = database.database): FastifyInstance {
  const made = fastify({ routerOptions: { maxParamLength: 20_000 } });
  addBaseHeaders(made, { mode: 'development' });
  addErrorHandling(made, makeErrorSender(PUBLIC_URL));
  const mediaUrls = makeMediaUrls({
    database: db,
    secretBox: testSecretBox,
    publicUrl: PUBLIC_URL,
    ttlSeconds: 0,
  });
  made.register(receivedMediaRoutes({ database: db, objectStore: store, mediaUrls }));
  return made;
}

function settings(overrides: Record<string, string> = {}) {
  return loadConfig(testSettings(database.url, overrides)).objectStore;
}

beforeAll(async () => {
  database = await createTestDatabase();
  objectStore = openObjectStore(
    settings({ HELIOGRAPH_OBJECT_STORE_BUCKET: `test-${randomBytes(6).toString('hex')}` }),
  );
  app = makeApp(objectStore);
});

afterAll(async () => {
  await app?.close();
  objectStore?.close();
  await database?.close();
});

/** A message to a new tenant whose media is pending; returns its id and the key it was given. */
async function pending(file: { mimeType: string; fileName?: string }) {
  const document = { id: '600000000000001', mime_type: file.mimeType, filename: file.fileName };
  const { wabaId, number } = await freshTenant(database.database);
  const { body, upstreamId } = messageBody({ type: 'document', document }, { wabaId, number });
  await takeIn(database.database, body);
  const [message] = await query<{ id: string }>(
    database.database,
    'select id from messages where upstream_id = :upstreamId',
    { upstreamId },
  );
  const messageId = message?.id ?? '';
  const objectKey = randomBytes(24).toString('base64url');
  await takePendingMedia(database.database, { wabaId, messageId, objectKey });
  return { wabaId, messageId, objectKey };
}

/** A stored file; returns its path. */
async function stored(bytes: Buffer, mimeType = 'image/jpeg', fileName?: string): Promise<string> {
  const { wabaId, messageId, objectKey } = await pending(
    fileName === undefined ? { mimeType } : { mimeType, fileName },
  );
  await objectStore.put(objectKey, Readable.from([bytes]), { contentType: 'application/octet-stream' });
  await database.database.transaction((trx) =>
    markMediaStored(trx, wabaId, messageId, {
      objectKey,
      mimeType,
      servedType: servedType(mimeType, bytes.subarray(0, 64)),
      sizeBytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    }),
  );
  return `/received_media/${objectKey}`;
}

const ask = (url: string, headers: Record<string, string> = {}, method: InjectOptions['method'] = 'GET') =>
  app.inject({ method: method ?? 'GET', url, headers });

describe('a stored file', () => {
  test('is served with its bytes and headers under which it can do no harm', async () => {
    const answer = await ask(await stored(JPEG, 'image/jpeg', 'Photo “1”.jpg'));
    expect(answer.statusCode).toBe(200);
    expect(answer.rawPayload.equals(JPEG)).toBe(true);
    expect(answer.headers).toMatchObject({
      'content-type': 'image/jpeg',
      'content-length': String(JPEG.length),
      'content-disposition': `inline; filename="Photo _1_.jpg"; filename*=UTF-8''Photo%20%E2%80%9C1%E2%80%9D.jpg`,
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'cross-origin',
      'referrer-policy': 'no-referrer',
      'cache-control': 'private, no-cache',
      etag: `"${createHash('sha256').update(JPEG).digest('hex')}"`,
    });
  });

  test('answers HEAD as GET without the bytes', async () => {
    const path = await stored(JPEG);
    const [head, whole] = [await ask(path, {}, 'HEAD'), await ask(path)];
    expect(head.rawPayload.length).toBe(0);
    const without = ({
      date: _date,
      'x-request-id': _id,
      connection: _connection,
      ...rest
    }: object & {
      date?: unknown;
      'x-request-id'?: unknown;
      connection?: unknown;
    }) => rest;
    expect(without(head.headers)).toEqual(without(whole.headers));
  });

  test.each([
    ['bytes=0-9', 0, 9],
    ['bytes=5000-', 5_000, 5_009],
    ['bytes=-10', 5_000, 5_009],
  ])('is served in part: %s', async (range, start, end) => {
    const answer = await ask(await stored(JPEG), { range });
    expect(answer.statusCode).toBe(206);
    expect(answer.headers['content-range']).toBe(`bytes ${start}-${end}/5010`);
    expect(answer.headers['content-length']).toBe(String(end - start + 1));
    expect(answer.rawPayload.equals(JPEG.subarray(start, end + 1))).toBe(true);
  });

  test('answers 416 with its size to a part that is not there, and whole to several parts', async () => {
    const path = await stored(JPEG);
    const beyond = await ask(path, { range: 'bytes=9999-' });
    expect([beyond.statusCode, beyond.headers['content-range'], beyond.body]).toEqual([
      416,
      'bytes */5010',
      '',
    ]);
    expect((await ask(path, { range: 'bytes=0-1,3-4' })).statusCode).toBe(200);
  });

  test('is not sent again to who has it, and a part only of the version that was meant', async () => {
    const path = await stored(JPEG);
    const etag = String((await ask(path)).headers.etag);
    const unchanged = await ask(path, { 'if-none-match': etag });
    expect([unchanged.statusCode, unchanged.body, unchanged.headers.etag]).toEqual([304, '', etag]);
    expect((await ask(path, { range: 'bytes=0-1', 'if-range': etag })).statusCode).toBe(206);
    expect((await ask(path, { range: 'bytes=0-1', 'if-range': '"other"' })).statusCode).toBe(200);
  });

  test.each([
    ['HTML that says it is an image', 'image/png', '<script>alert(1)</script>'],
    ['SVG', 'image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'],
    ['HTML', 'text/html', '<!doctype html>'],
  ])('%s is a download of unknown bytes', async (_name, mimeType, text) => {
    const { headers } = await ask(await stored(Buffer.from(text), mimeType, 'x.html'));
    expect(headers['content-type']).toBe('application/octet-stream');
    expect(headers['content-disposition']).toMatch(/^attachment; /);
  });

  test('of no bytes at all is served', async () => {
    const path = await stored(Buffer.alloc(0), 'text/plain');
    const answer = await ask(path);
    expect([answer.statusCode, answer.headers['content-length'], answer.body]).toEqual([200, '0', '']);
    expect((await ask(path, { range: 'bytes=0-' })).statusCode).toBe(416);
  });
});

describe('everything else', () => {
  test('is found together with 4,000 made-up tokens, in a few statements', async () => {
    const url = await stored(JPEG);
    let statements = 0;
    const counting: Database = Object.create(database.database, {
      raw: {
        value: (...given: Parameters<Database['raw']>) => {
          statements += 1;
          return database.database.raw(...given);
        },
      },
    });
    const busy = makeApp(objectStore, counting);
    onTestFinished(() => busy.close());
    await busy.ready();
    const strangers = Array.from({ length: 4_000 }, () =>
      busy.inject(`/received_media/${randomBytes(24).toString('base64url')}`),
    );
    const file = await busy.inject(url);
    expect([file.statusCode, file.rawPayload.equals(JPEG)]).toEqual([200, true]);
    const answers = await Promise.all(strangers);
    expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([404]));
    // Two for each look-up: of the files, and of those that were erased.
    expect(statements).toBeLessThan(100);
  });

  test('unknown, malformed, pending and traversing names get one and the same 404', async () => {
    const { objectKey } = await pending({ mimeType: 'image/jpeg' });
    await objectStore.put(objectKey, Readable.from([JPEG]), { contentType: 'image/jpeg' });
    const names = [
      UNKNOWN_TOKEN,
      objectKey,
      'short',
      'A'.repeat(65),
      'A'.repeat(15_000),
      '..%2f..%2fetc%2fpasswd',
      '%00'.repeat(30),
      `${UNKNOWN_TOKEN}.jpg`,
      `${UNKNOWN_TOKEN}'--`,
      '%F0%9F%98%80'.repeat(10),
    ];
    const answers = await Promise.all(names.map((name) => ask(`/received_media/${name}`)));
    for (const answer of answers) {
      expect(answer.statusCode).toBe(404);
      expect({ ...answer.json().error, requestId: '' }).toEqual({
        ...answers[0]?.json().error,
        requestId: '',
      });
      expect(answer.headers['cache-control']).toBe('no-store');
    }
  });

  test('a store that is away gives 503 with Retry-After, while HEAD and 304 still answer', async () => {
    const path = await stored(JPEG);
    const away = openObjectStore(settings({ HELIOGRAPH_OBJECT_STORE_URL: 'http://127.0.0.1:1' }));
    const broken = makeApp(away);
    onTestFinished(() => broken.close());
    const answer = await broken.inject({ url: path });
    expect(answer.statusCode).toBe(503);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(answer.json().error.code).toBe('service_unavailable');
    expect(answer.body).not.toMatch(/127\.0\.0\.1|ECONN/);
    expect((await broken.inject({ method: 'HEAD', url: path })).statusCode).toBe(200);
  });

  test('a file that the store has lost is a 404', async () => {
    const path = await stored(JPEG);
    await objectStore.remove(path.slice('/received_media/'.length));
    expect((await ask(path)).statusCode).toBe(404);
  });

  test('when the client goes away, the stream from the store is destroyed', async () => {
    const path = await stored(Buffer.concat([JPEG, randomBytes(20 * 1024 * 1024)]));
    const opened: Readable[] = [];
    const watched = makeApp({
      ...objectStore,
      getRange: async (...parameters) => {
        const body = await objectStore.getRange(...parameters);
        opened.push(body);
        return body;
      },
    });
    onTestFinished(() => watched.close());
    await watched.listen({ host: '127.0.0.1', port: 0 });
    const { port } = watched.server.address() as AddressInfo;
    const response = await new Promise<IncomingMessage>((resolve) => {
      get({ host: '127.0.0.1', port, path }, resolve).on('error', () => undefined);
    });
    response.on('error', () => undefined);
    await new Promise((resolve) => response.once('data', resolve));
    expect(opened[0]?.destroyed).toBe(false);
    response.destroy();
    await eventually('the stream is destroyed', () => opened[0]?.destroyed, { is: true });
  });

  test('the placeholder image is a PNG that anyone may embed', async () => {
    const answer = await ask('/assets/product-placeholder.png');
    expect(answer.statusCode).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'image/png',
      'cross-origin-resource-policy': 'cross-origin',
    });
    expect(answer.rawPayload.subarray(1, 4).toString()).toBe('PNG');
  });
});
