import http from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import type { Client } from 'minio';
import type { Config } from '../config/config.ts';
import { boundedTransport } from './bounded-transport.ts';
import { uploadObject } from './multipart-upload.ts';
import { isBucketMissing, objectStoreError } from './object-store-error.ts';

const DEFAULT_TIMEOUTS = { answerTimeoutMs: 20_000, stallTimeoutMs: 30_000 };
const MAX_SOCKETS = 64;

/** Every method throws ObjectStoreUnavailable; those that read an object throw ObjectMissing as well. */
export type ObjectStore = {
  /** Creates the bucket if there is none. */
  ensureBucket(): Promise<void>;
  /**
   * Stores what `source` yields, of any length and without holding it in memory, in place of what was there. The object
   * appears when the source has ended; what the source throws is thrown unchanged and leaves nothing. Returns bytes.
   */
  put(key: string, source: AsyncIterable<Uint8Array>, options: { contentType: string }): Promise<number>;
  /** Bytes `start` to `end`, both inclusive, or everything. The caller reads the stream or destroys it. */
  getRange(key: string, range?: { start: number; end: number }): Promise<Readable>;
  stat(key: string): Promise<{ sizeBytes: number }>;
  /** Removes an object; one that is not there is no error. */
  remove(key: string): Promise<void>;
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
  const { bucket } = config;
  const agent = openAgent(config);
  let opening: Promise<Client> | null = null;
  let bucketIsThere = false;

  const ensureBucket = async (client: Client) => {
    if (bucketIsThere) return;
    if (!(await client.bucketExists(bucket))) await createBucket(client, config);
    bucketIsThere = true;
  };
  const run = async <Result>(key: string, work: (client: Client) => Promise<Result>): Promise<Result> => {
    opening ??= openClient(config, agent, timeouts);
    const client = await opening;
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
      try {
        return await run(key, (client) => uploadObject({ client, bucket, key, contentType }, watched.source));
      } catch (error) {
        throw watched.failure()?.error ?? error;
      }
    },
    getRange: (key, range) =>
      run(key, (client) =>
        range === undefined
          ? client.getObject(bucket, key)
          : client.getPartialObject(bucket, key, range.start, range.end - range.start + 1),
      ),
    stat: (key) => run(key, async (client) => ({ sizeBytes: (await client.statObject(bucket, key)).size })),
    remove: (key) => run(key, (client) => client.removeObject(bucket, key)),
    close: () => agent.destroy(),
  };
}

function openAgent({ url }: Config['objectStore']): http.Agent {
  const { Agent } = url.startsWith('https:') ? https : http;
  return new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
}

async function openClient(
  config: Config['objectStore'],
  agent: http.Agent,
  timeouts: { answerTimeoutMs: number; stallTimeoutMs: number },
): Promise<Client> {
  const { Client: MinioClient } = await import('./minio-library.ts');
  const url = new URL(config.url);
  const useSSL = url.protocol === 'https:';
  return new MinioClient({
    endPoint: url.hostname,
    port: url.port === '' ? (useSSL ? 443 : 80) : Number(url.port),
    useSSL,
    accessKey: config.accessKey,
    secretKey: config.secretKey,
    region: config.region,
    transport: boundedTransport(timeouts),
    transportAgent: agent,
    // Whoever calls decides about retries; the library's own are silent and hold the caller up.
    retryOptions: { disableRetry: true },
  });
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
