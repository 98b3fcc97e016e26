import { AsyncLocalStorage } from 'node:async_hooks';
import type { ClientRequest, IncomingMessage } from 'node:http';
import http from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import type { Readable } from 'node:stream';
import type { Client, ClientOptions } from 'minio';
import type { Config } from '../config/config.ts';
import { expiresVersions, readVersioning, removeVersions } from './object-versions.ts';

const DEFAULT_TIMEOUTS = { answerTimeoutMs: 20_000, stallTimeoutMs: 30_000 };
const MAX_SOCKETS = 64;

export type StoredObject = { key: string; modifiedAt: Date };

/** Every method throws ObjectStoreUnavailable; those that read an object throw ObjectMissing as well. */
export type ObjectStore = {
  /** Creates the bucket if there is none. */
  ensureBucket(): Promise<void>;
  /**
   * Stores what `source` yields, of any length and without holding it in memory, in place of what was there. The object
   * appears when the source has ended; what the source throws is thrown unchanged and leaves nothing. Returns bytes.
   */
  put(key: string, source: AsyncIterable<Uint8Array>, options: { contentType: string }): Promise<number>;
  /**
   * Bytes `start` to `end`, both inclusive, or everything. The caller reads the stream or destroys it; once `signal` is
   * aborted, nothing is waited for any more.
   */
  getRange(key: string, range?: { start: number; end: number }, signal?: AbortSignal): Promise<Readable>;
  stat(key: string): Promise<{ sizeBytes: number }>;
  /**
   * Removes an object with all its versions; one that is not there is no error. Returns how many versions stay because the
   * store does not let them go.
   */
  remove(key: string): Promise<number>;
  /** Whether the bucket keeps versions, and whether a lifecycle rule removes noncurrent ones; null: not known. */
  versioning(): Promise<{ state: 'on' | 'off' | 'unknown'; noncurrentExpire: boolean | null }>;
  /** All objects, in the order of their keys. */
  list(): AsyncIterable<StoredObject>;
  close(): void;
};

/**
 * Opens the object store. Nothing is connected yet, so that a store that is away does not stop the process, and the
 * library is loaded when it is first needed: it takes 15 MiB.
 */
export function openObjectStore(
  config: Config['objectStore'],
  timeouts: { answerTimeoutMs: number; stallTimeoutMs: number } = DEFAULT_TIMEOUTS,
): ObjectStore {
  const { bucket, prefix } = config;
  const encryption = encryptionHeaders(config);
  const agent = openAgent(config);
  let client: Client | null = null;
  let bucketIsThere = false;

  const ensureBucket = async (client: Client) => {
    if (bucketIsThere) return;
    if (!(await client.bucketExists(bucket))) await createBucket(client, config);
    bucketIsThere = true;
  };
  const run = async <Result>(key: string, work: (client: Client) => Promise<Result>): Promise<Result> => {
    client ??= openClient(config, agent, timeouts);
    try {
      return await work(client);
    } catch (error) {
      if (isBucketMissing(error)) bucketIsThere = false;
      throw objectStoreError(error, key);
    }
  };

  return {
    ensureBucket: () => run('', ensureBucket),
    async put(key, source, { contentType }) {
      await run(key, ensureBucket);
      const watched = watchSource(source);
      const target = { bucket, key: prefix + key, headers: { 'Content-Type': contentType, ...encryption } };
      try {
        return await run(key, (client) => uploadObject({ client, ...target }, watched.source));
      } catch (error) {
        throw watched.failure()?.error ?? error;
      }
    },
    getRange: (key, range, signal) =>
      requestSignal.run(signal, () =>
        run(key, (client) =>
          range === undefined
            ? client.getObject(bucket, prefix + key)
            : client.getPartialObject(bucket, prefix + key, range.start, range.end - range.start + 1),
        ),
      ),
    stat: (key) =>
      run(key, async (client) => ({ sizeBytes: (await client.statObject(bucket, prefix + key)).size })),
    remove: (key) => run(key, (client) => removeVersions(client, bucket, prefix + key)),
    versioning: () =>
      run('', async (client) => {
        const state = await readVersioning(client, bucket);
        return { state, noncurrentExpire: await expiresVersions(client, bucket, prefix) };
      }),
    async *list() {
      const listed = await run('', async (client) => client.listObjectsV2(bucket, prefix, true));
      yield* storedObjects(listed, prefix);
    },
    close: () => agent.destroy(),
  };
}

async function* storedObjects(
  listed: AsyncIterable<{ name?: string; lastModified: Date }>,
  prefix: string,
): AsyncIterable<StoredObject> {
  try {
    for await (const { name, lastModified } of listed) {
      yield { key: String(name).slice(prefix.length), modifiedAt: new Date(lastModified) };
    }
  } catch (error) {
    throw objectStoreError(error, '');
  }
}

function openAgent({ url }: Config['objectStore']): http.Agent {
  const { Agent } = url.startsWith('https:') ? https : http;
  return new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
}

function openClient(
  config: Config['objectStore'],
  agent: http.Agent,
  timeouts: { answerTimeoutMs: number; stallTimeoutMs: number },
): Client {
  const { Client: MinioClient } = loadLibrary();
  const url = new URL(config.url);
  const useSSL = url.protocol === 'https:';
  return new MinioClient({
    endPoint: url.hostname,
    port: url.port === '' ? (useSSL ? 443 : 80) : Number(url.port),
    useSSL,
    ...credentialsOf(config),
    region: config.region,
    transport: boundedTransport(timeouts),
    transportAgent: agent,
    // The caller decides about retries; the library's own are silent and delay it.
    retryOptions: { disableRetry: true },
  });
}

/**
 * The MinIO library in its CommonJS form. As an ES module it reads the CommonJS libraries under it twice and keeps both
 * texts, and its own source maps: some 4 MiB of memory per process.
 */
function loadLibrary(): typeof import('minio') {
  return createRequire(import.meta.url)('minio');
}

/**
 * The AWS environment is asked at the first request, and again before what it gave expires. By AWS's own library: the
 * MinIO library's reads other names than AWS's services answer with.
 */
function credentialsOf({ credentials, accessKey, secretKey, region }: Config['objectStore']): Credentials {
  if (credentials === 'keys') return { accessKey, secretKey };
  const { defaultProvider }: typeof import('@aws-sdk/credential-provider-node') = createRequire(
    import.meta.url,
  )('@aws-sdk/credential-provider-node');
  const provide = defaultProvider({ clientConfig: { region } });
  const getCredentials = async () => {
    const { accessKeyId, secretAccessKey, sessionToken } = await provide();
    return {
      getAccessKey: () => accessKeyId,
      getSecretKey: () => secretAccessKey,
      getSessionToken: () => sessionToken,
    };
  };
  return { credentialsProvider: { getCredentials } as unknown as CredentialProvider };
}

type CredentialProvider = NonNullable<ClientOptions['credentialsProvider']>;

type Credentials = Pick<ClientOptions, 'accessKey' | 'secretKey' | 'credentialsProvider'>;

/** What is asked for with every object; nothing: the bucket's own setting holds. */
function encryptionHeaders({ encryption, kmsKeyId }: Config['objectStore']): Record<string, string> {
  if (encryption === 'default') return {};
  return {
    'X-Amz-Server-Side-Encryption': encryption,
    ...(kmsKeyId !== '' && { 'X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id': kmsKeyId }),
  };
}

/** Several processes may start at once: the bucket that another one made meanwhile is as good. */
async function createBucket(client: Client, { bucket, region }: Config['objectStore']): Promise<void> {
  try {
    await client.makeBucket(bucket, region);
  } catch (error) {
    if (!(await client.bucketExists(bucket))) throw error;
  }
}

/** Remembers what the source threw, to tell it from what the store did. */
function watchSource(source: AsyncIterable<Uint8Array>) {
  let failure: { error: unknown } | null = null;
  async function* watched(): AsyncGenerator<Uint8Array> {
    try {
      yield* source;
    } catch (error) {
      failure = { error };
      throw error;
    }
  }
  return { source: watched(), failure: () => failure };
}

type Transport = Pick<typeof http, 'request'>;

/** Ends the requests that are made within it: the client library passes no signal on. */
const requestSignal = new AsyncLocalStorage<AbortSignal | undefined>();

/** Statuses at which the client library gives up without reading the body. */
const UNREAD_STATUSES = new Set([408, 429, 499, 500, 502, 503, 504, 520]);

/**
 * An http transport that never hangs: a request that gets no connection within `answerTimeoutMs` is destroyed, and so is
 * a connection that carries nothing for that time before the response, and a response whose body stalls for
 * `stallTimeoutMs` while its reader waits for more.
 */
function boundedTransport(timeouts: { answerTimeoutMs: number; stallTimeoutMs: number }): Transport {
  const request = (options: http.RequestOptions, onResponse?: (response: IncomingMessage) => void) => {
    const { request: start } = options.protocol === 'https:' ? https : http;
    const signal = requestSignal.getStore();
    const outgoing: ClientRequest = start(options, (response) => {
      outgoing.setTimeout(0);
      if (UNREAD_STATUSES.has(response.statusCode ?? 0)) response.resume();
      endWhenStalled(response, timeouts.stallTimeoutMs);
      onResponse?.(response);
    });
    // Who waits for it has listeners: an error that comes when nobody does must not end the process.
    outgoing.on('error', () => undefined);
    outgoing.setTimeout(timeouts.answerTimeoutMs, () => {
      outgoing.destroy(new Error(`no answer within ${timeouts.answerTimeoutMs} ms`));
    });
    // Node's own time-out begins with the connection: it does not count the wait for one.
    const unconnected = setTimeout(() => {
      end(outgoing, new Error(`no connection within ${timeouts.answerTimeoutMs} ms`));
    }, timeouts.answerTimeoutMs);
    outgoing.once('socket', () => clearTimeout(unconnected)).once('close', () => clearTimeout(unconnected));
    if (signal !== undefined) endAtSignal(outgoing, signal);
    return outgoing;
  };
  return { request: request as Transport['request'] };
}

function endAtSignal(outgoing: ClientRequest, signal: AbortSignal): void {
  const abort = () => end(outgoing, new Error('nobody waits for the answer any more'));
  // The library listens for errors once it has the request.
  if (signal.aborted) return void process.nextTick(abort);
  signal.addEventListener('abort', abort, { once: true });
  outgoing.once('close', () => signal.removeEventListener('abort', abort));
}

/** Of a request that waits for a connection, Node would report the error only when it has one, which may be never. */
function end(outgoing: ClientRequest, error: Error): void {
  outgoing.destroy(error);
  if (outgoing.socket === null) outgoing.emit('error', error);
}

/** A socket timeout would also cut a body that our own slow reader holds back; this looks at who is waiting. */
function endWhenStalled(response: IncomingMessage, stallTimeoutMs: number): void {
  let seenBytes = -1;
  const timer = setInterval(() => {
    const bytesRead = response.socket?.bytesRead ?? seenBytes;
    const readerWaits = response.readableLength === 0;
    if (readerWaits && bytesRead === seenBytes) {
      response.destroy(new Error(`the answer stalled for ${stallTimeoutMs} ms`));
    }
    seenBytes = bytesRead;
  }, stallTimeoutMs);
  timer.unref();
  response.once('close', () => clearInterval(timer));
}

/** The smallest part that S3 accepts; at most one part is held in memory. */
export const PART_BYTES = 5 * 1024 * 1024;

type Target = { client: Client; bucket: string; key: string; headers: Record<string, string> };
type Part = { part: number; etag: string };

/**
 * Stores the bytes of `source` as one object. Nothing becomes visible before the source has ended: if it throws, or
 * the store fails, the upload is aborted and the error passed on. Returns how many bytes were stored.
 */
async function uploadObject(target: Target, source: AsyncIterable<Uint8Array>): Promise<number> {
  let uploadId: string | null = null;
  let sizeBytes = 0;
  const parts: Part[] = [];
  try {
    for await (const { bytes, isLast } of partsOf(source)) {
      sizeBytes += bytes.length;
      if (isLast && uploadId === null) {
        await putWhole(target, bytes);
        return sizeBytes;
      }
      uploadId ??= await begin(target);
      parts.push(await putPart(target, uploadId, parts.length + 1, bytes));
    }
    if (uploadId !== null) {
      await target.client.completeMultipartUpload(target.bucket, target.key, uploadId, parts);
    }
    return sizeBytes;
  } catch (error) {
    if (uploadId !== null) await abort(target, uploadId);
    throw error;
  }
}

/** Cuts a stream into parts of PART_BYTES; the last one, possibly empty, is marked. */
async function* partsOf(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ bytes: Buffer; isLast: boolean }> {
  let chunks: Uint8Array[] = [];
  let collectedBytes = 0;
  for await (const chunk of source) {
    chunks.push(chunk);
    collectedBytes += chunk.length;
    while (collectedBytes > PART_BYTES) {
      const collected = Buffer.concat(chunks);
      yield { bytes: collected.subarray(0, PART_BYTES), isLast: false };
      chunks = [collected.subarray(PART_BYTES)];
      collectedBytes -= PART_BYTES;
    }
  }
  yield { bytes: Buffer.concat(chunks), isLast: true };
}

async function putWhole({ client, bucket, key, headers }: Target, bytes: Buffer): Promise<void> {
  await client.putObject(bucket, key, bytes, bytes.length, headers);
}

async function begin({ client, bucket, key, headers }: Target): Promise<string> {
  return await client.initiateNewMultipartUpload(bucket, key, headers);
}

async function putPart(target: Target, uploadID: string, partNumber: number, bytes: Buffer): Promise<Part> {
  const { client, bucket: bucketName, key: objectName } = target;
  const headers = { 'Content-Length': bytes.length };
  const { etag } = await client.uploadPart({ bucketName, objectName, uploadID, partNumber, headers }, bytes);
  return { part: partNumber, etag };
}

/** Best effort: the store itself drops uploads that are never completed. */
async function abort({ client, bucket, key }: Target, uploadId: string): Promise<void> {
  await client.abortMultipartUpload(bucket, key, uploadId).catch(() => undefined);
}

/** The store cannot be used now: it is away, hangs, is full or refuses our credentials. Try again later. */
export class ObjectStoreUnavailable extends Error {
  constructor(reason: string, cause?: unknown) {
    super(`The object store is not available: ${reason}`, { cause });
    this.name = 'ObjectStoreUnavailable';
  }
}

/** The store answered that there is no such object. */
export class ObjectMissing extends Error {
  constructor(key: string) {
    super(`The object store has no object ${key}`);
    this.name = 'ObjectMissing';
  }
}

const MISSING_CODES = new Set(['NoSuchKey', 'NotFound']);

/** Turns what the client library throws into one of our two errors; both pass unchanged. */
export function objectStoreError(error: unknown, key: string): ObjectStoreUnavailable | ObjectMissing {
  if (error instanceof ObjectStoreUnavailable || error instanceof ObjectMissing) return error;
  if (MISSING_CODES.has(storeCode(error))) return new ObjectMissing(key);
  return new ObjectStoreUnavailable(reasonOf(error), error);
}

/** Whether the bucket itself is gone, as after the store was wiped. */
function isBucketMissing(error: unknown): boolean {
  return storeCode(error) === 'NoSuchBucket';
}

/** What the store itself said; empty for what is not its answer. By name: the library need not be loaded for it. */
function storeCode(error: unknown): string {
  const isAnswer = error instanceof Error && error.name === 'S3Error' && 'code' in error;
  return isAnswer ? String(error.code) : '';
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  if (error.message === '') return code ?? error.name;
  return code === null || error.message.includes(code) ? error.message : `${code}: ${error.message}`;
}
