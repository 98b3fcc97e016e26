import type { Readable } from 'node:stream';
import type { Client } from 'minio';
import type { Config } from '../config/config.ts';
import { uploadObject } from './multipart-upload.ts';
import { expiresVersions, readVersioning, removeVersions } from './object-versions.ts';
import { DEFAULT_TIMEOUTS, encryptionHeaders, openAgent, openClient, requestSignal } from './store-client.ts';
import { isBucketMissing, objectStoreError } from './store-errors.ts';

export type StoredObject = { key: string; modifiedAt: Date };

/** Every method throws ObjectStoreUnavailable; those that read an object throw ObjectMissing as well. */
export type ObjectStore = {
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
