import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Client } from 'minio';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { PART_BYTES } from '../../../../src/platform/object-store/multipart-upload.ts';
import { type ObjectStore, openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { ObjectMissing, ObjectStoreUnavailable } from '../../../../src/platform/object-store/store-errors.ts';
import { listenInTest } from '../../../support/listen.ts';
import { testSettings } from '../../../support/test-settings.ts';

const bucket = `test-${randomBytes(6).toString('hex')}`;
const options = { contentType: 'application/octet-stream' };

let store: ObjectStore;
let admin: Client;

function config(overrides: Record<string, string> = {}) {
  const settings = testSettings('postgres://unused@127.0.0.1/unused', {
    HELIOGRAPH_OBJECT_STORE_BUCKET: bucket,
    ...otherStore(),
  });
  return loadConfig({ ...settings, ...overrides }).objectStore;
}

/** `npm run test:stack` has the bundled store go through these tests: OBJECT_STORE=http://key:secret@host:port */
function otherStore(): Record<string, string> {
  if (process.env.OBJECT_STORE === undefined) return {};
  const { origin, username, password } = new URL(process.env.OBJECT_STORE);
  return {
    HELIOGRAPH_OBJECT_STORE_URL: origin,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: username,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: password,
  };
}

function open(overrides: Record<string, string>, timeouts = { answerTimeoutMs: 500, stallTimeoutMs: 500 }) {
  const opened = openObjectStore(config(overrides), timeouts);
  onTestFinished(() => opened.close());
  return opened;
}

/** Yields `bytes` in pieces, then fails if told to. */
async function* pieces(bytes: Buffer, failure?: Error): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += 100_000) yield bytes.subarray(start, start + 100_000);
  if (failure !== undefined) throw failure;
}

/** MinIO lists them for one whole key only. */
async function unfinishedUploads(key: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const upload of admin.listIncompleteUploads(bucket, key, true)) keys.push(upload.key);
  return keys;
}

beforeAll(async () => {
  store = openObjectStore(config());
  await store.ensureBucket();
  const { url, accessKey, secretKey, region } = config();
  const { hostname, port } = new URL(url);
  admin = new Client({ endPoint: hostname, port: Number(port), useSSL: false, accessKey, secretKey, region });
});

afterAll(() => store.close());

describe('the object store', () => {
  test.each([0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES, 2 * PART_BYTES + 12_345])(
    'gives back the same %d bytes, whole and in part',
    async (sizeBytes) => {
      const bytes = randomBytes(sizeBytes);
      expect(await store.put(`same-${sizeBytes}`, pieces(bytes), options)).toBe(sizeBytes);
      const back = await buffer(await store.getRange(`same-${sizeBytes}`));
      expect(createHash('sha256').update(back).digest('hex')).toBe(
        createHash('sha256').update(bytes).digest('hex'),
      );
      expect(await store.stat(`same-${sizeBytes}`)).toEqual({ sizeBytes });
      if (sizeBytes < 2) return;
      const range = { start: 1, end: sizeBytes - 1 };
      expect((await buffer(await store.getRange(`same-${sizeBytes}`, range))).equals(bytes.subarray(1))).toBe(
        true,
      );
      const first = await buffer(await store.getRange(`same-${sizeBytes}`, { start: 0, end: 0 }));
      expect(first).toEqual(bytes.subarray(0, 1));
    },
  );

  test.each([1_000, 3 * PART_BYTES])(
    'a source that fails after %d bytes leaves neither an object nor an open upload',
    async (sizeBytes) => {
      const failure = new Error('the source failed');
      const key = `broken-${sizeBytes}`;
      await expect(store.put(key, pieces(randomBytes(sizeBytes), failure), options)).rejects.toBe(failure);
      await expect(store.stat(key)).rejects.toThrow(ObjectMissing);
      expect(await unfinishedUploads(key)).toEqual([]);
      const uploadId = await admin.initiateNewMultipartUpload(bucket, key, {});
      expect(await unfinishedUploads(key)).toEqual([key]);
      await admin.abortMultipartUpload(bucket, key, uploadId);
    },
  );

  test('a source that fails does not harm the object that was there before', async () => {
    await store.put('kept', pieces(Buffer.from('before')), options);
    await expect(store.put('kept', pieces(randomBytes(10), new Error('x')), options)).rejects.toThrow('x');
    expect((await buffer(await store.getRange('kept'))).toString()).toBe('before');
  });

  test('what is not there is missing, and removing it twice is no error', async () => {
    await store.put('removed', pieces(Buffer.from('x')), options);
    await store.remove('removed');
    await store.remove('removed');
    await expect(store.stat('removed')).rejects.toThrow(ObjectMissing);
    await expect(store.getRange('removed')).rejects.toThrow(ObjectMissing);
    await expect(store.getRange('removed', { start: 0, end: 1 })).rejects.toThrow(ObjectMissing);
  });

  test('a bucket that was lost is made anew by the put after the one that failed', async () => {
    const lost = `test-${randomBytes(6).toString('hex')}`;
    const own = open(
      { HELIOGRAPH_OBJECT_STORE_BUCKET: lost },
      { answerTimeoutMs: 5_000, stallTimeoutMs: 5_000 },
    );
    await own.ensureBucket();
    await admin.removeBucket(lost);
    await expect(own.put('a', pieces(Buffer.from('x')), options)).rejects.toThrow(ObjectStoreUnavailable);
    await expect(own.put('a', pieces(Buffer.from('x')), options)).resolves.toBe(1);
  });
});

describe('an object store that is in trouble', () => {
  const uses: [string, (broken: ObjectStore) => Promise<unknown>][] = [
    ['put', (broken) => broken.put('a', pieces(Buffer.from('x')), options)],
    ['getRange', (broken) => broken.getRange('a')],
    ['stat', (broken) => broken.stat('a')],
    ['remove', (broken) => broken.remove('a')],
    ['ensureBucket', (broken) => broken.ensureBucket()],
  ];

  test.each(uses)('%s says so when nobody listens', async (_name, use) => {
    const broken = open({ HELIOGRAPH_OBJECT_STORE_URL: 'http://127.0.0.1:1' });
    await expect(use(broken)).rejects.toThrow(ObjectStoreUnavailable);
  });

  test.each(uses)('%s says so when it does not answer in time', async (_name, use) => {
    const server = createServer(() => undefined);
    const port = await listenInTest(server);
    await expect(use(open({ HELIOGRAPH_OBJECT_STORE_URL: `http://127.0.0.1:${port}` }))).rejects.toThrow(
      /no answer within 500 ms/,
    );
  });

  test.each(uses)('%s says so when it refuses our credentials', async (_name, use) => {
    await expect(use(open({ HELIOGRAPH_OBJECT_STORE_SECRET_KEY: 'wrong-secret-key' }))).rejects.toThrow(
      ObjectStoreUnavailable,
    );
  });

  test('a body that stalls ends with an error, one whose reader is slow does not', async () => {
    const bytes = randomBytes(4 * PART_BYTES);
    await store.put('slow', pieces(bytes), options);
    const body = await open({}).getRange('slow');
    const [first] = (await body[Symbol.asyncIterator]().next()).value as [number];
    await new Promise((resolve) => setTimeout(resolve, 1_800));
    expect(first).toBe(bytes[0]);
    expect(body.destroyed).toBe(false);
    body.destroy();

    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'));
    });
    const port = await listenInTest(server);
    const stalled = await open({ HELIOGRAPH_OBJECT_STORE_URL: `http://127.0.0.1:${port}` }).getRange('a');
    await expect(buffer(stalled)).rejects.toThrow(/stalled/);
  });
});
