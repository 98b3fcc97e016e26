import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { insertBodies } from '../../inbound/inbox.ts';
import type { Config } from '../../platform/config/config.ts';
import type { AppSecret } from '../../platform/config/read-settings.ts';
import { tracing } from '../../platform/metrics/metrics.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { isDataError } from '../../platform/postgres/error-class.ts';
import { ApiError, unavailable } from '../errors/api-error.ts';
import { guardBodies } from '../shares/client-shares.ts';
import { entriesOf, type SignedBody } from './bound-secrets.ts';

/** Less than the 5 seconds after which upstream is said to give up. */
const COMMIT_TIMEOUT_MS = 4_000;

/** An insert that takes longer than upstream waits is of no use; what is not even cancelled has lost its server. */
export const INGRESS_TIMEOUTS = { statementMs: COMMIT_TIMEOUT_MS, answerMs: COMMIT_TIMEOUT_MS + 1_000 };

/** More than the time-out of the answer: what hangs longer has lost its connection. */
const ABANDON_AFTER_MS = INGRESS_TIMEOUTS.answerMs + 1_000;

/**
 * Keeps some of the bodies and takes them in in one transaction; the others, and those unless `isKept`, which never
 * rejects, are to be kept the usual way.
 */
export type KeepAtOnce = (bodies: readonly Buffer[]) => {
  usual: readonly Buffer[];
  tried: readonly Buffer[];
  isKept: Promise<boolean>;
};

/** Where the upstream platform sends its webhooks. Nothing is parsed here and nothing is asked of Temporal. */
export async function upstreamWebhookRoutes(
  scope: FastifyInstance,
  { config, database, keepAtOnce }: { config: Config; database: Database; keepAtOnce?: KeepAtOnce },
): Promise<void> {
  const batcher = new BodyBatcher({
    store: async (bodies) => {
      if (keepAtOnce === undefined) return await insertBodies(database, bodies);
      const { usual, tried, isKept } = keepAtOnce(bodies);
      await Promise.all([
        usual.length === 0 ? null : insertBodies(database, usual),
        isKept.then((kept) => (kept ? null : insertBodies(database, tried))),
      ]);
    },
    isTransient: (error) => !isDataError(error),
    onPoison: (error, sizeBytes) =>
      scope.log.error({ err: error, sizeBytes }, 'an upstream body cannot be stored'),
    maxBatchBodies: 500,
    maxBatchBytes: 4 * 1024 * 1024,
    maxWaitingBytes: 64 * 1024 * 1024,
    commitTimeoutMs: COMMIT_TIMEOUT_MS,
    abandonAfterMs: ABANDON_AFTER_MS,
  });
  scope.addHook('onClose', async () => await batcher.drained());
  verificationHandshake(scope, config.upstream.verifyToken);
  receiveWebhook(scope, { appSecrets: config.upstream.appSecrets, batcher, database });
}

/** How much of a body that is too large is still read (and dropped), so that its sender gets to see the answer. */
const MAX_DROPPED_BYTES = 32 * 1024 * 1024;

/** Reads a request body as the bytes that were sent. Throws ApiError 413. */
async function readRawBody(payload: Readable, maxBodyBytes: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let chunks: Buffer[] = [];
  let sizeBytes = 0;
  const onData = (chunk: Buffer): void => {
    sizeBytes += chunk.length;
    if (sizeBytes <= maxBodyBytes) chunks.push(chunk);
    else chunks = [];
    if (sizeBytes > MAX_DROPPED_BYTES) resolve();
  };
  // Listeners and not an iterator, which would destroy the connection before it has the answer.
  payload.on('data', onData).once('end', resolve).once('error', reject);
  try {
    await promise;
  } finally {
    payload.off('data', onData);
  }
  if (sizeBytes > maxBodyBytes) throw new ApiError('body_too_large');
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

const MAX_CHALLENGE_CHARS = 1024;

/** GET /upstream/webhook: proves to the upstream platform that this address is meant to receive its webhooks. */
function verificationHandshake(scope: FastifyInstance, verifyToken: string): void {
  scope.get('/upstream/webhook', (request, reply) => {
    const query = request.query as Readonly<Record<string, unknown>>;
    const mode = textParam(query, 'hub.mode');
    const challenge = textParam(query, 'hub.challenge');
    const token = textParam(query, 'hub.verify_token');
    if (challenge.length > MAX_CHALLENGE_CHARS) {
      throw new ApiError('invalid_parameter', {
        param: 'hub.challenge',
        message: 'The challenge is too long.',
      });
    }
    if (mode !== 'subscribe' || !isSameToken(token, verifyToken)) throw new ApiError('verification_failed');
    return reply.type('text/plain; charset=utf-8').send(challenge);
  });
}

function textParam(query: Readonly<Record<string, unknown>>, param: string): string {
  const value = query[param];
  if (typeof value === 'string' && value !== '') return value;
  throw new ApiError('invalid_parameter', { param, message: 'The parameter must be given once.' });
}

/** Compares hashes, which have one length whatever is sent. An empty token in the settings verifies nothing. */
function isSameToken(given: string, expected: string): boolean {
  const [left, right] = [given, expected].map((token) => createHash('sha256').update(token).digest());
  return expected !== '' && left !== undefined && right !== undefined && timingSafeEqual(left, right);
}

/**
 * Finds out what a body may say: all of it when a secret signed it that is bound to no WABA, otherwise the entries of
 * the WABAs that its secrets may speak for. Null: no app of ours signed it.
 */
async function readSigned(
  database: Database,
  { body, header }: { body: Buffer; header: string },
  appSecrets: readonly AppSecret[],
): Promise<SignedBody | null> {
  const [free, bound] = [
    appSecrets.filter(({ wabaIds }) => wabaIds === null),
    appSecrets.filter(({ wabaIds }) => wabaIds !== null),
  ];
  const secretsOf = (some: readonly AppSecret[]) => some.map(({ secret }) => secret);
  if (verifyUpstreamSignature(body, header, secretsOf(free))) return { body, foreignEntries: 0 };
  const signers = bound.filter(({ secret }) => verifyUpstreamSignature(body, header, [secret]));
  if (signers.length === 0) return null;
  return await entriesOf(database, body, new Set(signers.flatMap(({ wabaIds }) => wabaIds ?? [])));
}

/** Upstream sends up to 3 MB; its unit is not known, so the larger one holds. */
const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** Whose bodies they are is known when they are whole. */
const BODY_LIMITS = { maxBytes: 128 * 1024 * 1024, maxBytesPerAddress: 32 * 1024 * 1024 };

const EMPTY = Buffer.alloc(0);

/** POST /upstream/webhook: a body with a valid signature is kept as it is; 200 says that it is committed. */
function receiveWebhook(
  scope: FastifyInstance,
  {
    appSecrets,
    batcher,
    database,
  }: {
    appSecrets: readonly AppSecret[];
    batcher: BodyBatcher;
    database: Database;
  },
): void {
  guardBodies(scope, BODY_LIMITS);
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    '*',
    async (_request: FastifyRequest, payload: Readable) => await readRawBody(payload, MAX_BODY_BYTES),
  );
  scope.route({
    method: 'POST',
    url: '/upstream/webhook',
    bodyLimit: MAX_BODY_BYTES,
    onRequest: async (request) => {
      if (!isUpstreamSignature(request.headers['x-hub-signature-256']))
        throw new ApiError('invalid_signature');
      refuseLargeBody(request);
      // Whatever upstream calls it, and however it spells that, the body is bytes here.
      request.headers['content-type'] = 'application/octet-stream';
    },
    handler: async (request, reply) => {
      const body = Buffer.isBuffer(request.body) ? request.body : EMPTY;
      const header = request.headers['x-hub-signature-256'];
      const signed = isUpstreamSignature(header)
        ? await readSigned(database, { body, header }, appSecrets)
        : null;
      if (signed === null) throw new ApiError('invalid_signature');
      const { foreignEntries } = signed;
      if (foreignEntries > 0) request.log.warn({ foreignEntries }, 'an app secret signed for a foreign WABA');
      const storeMs = Date.now();
      await keep(batcher, signed.body);
      noteReceived(signed.body, { endMs: Date.now(), storeMs, elapsedMs: reply.elapsedTime });
      return reply.type('text/plain; charset=utf-8').send('');
    },
  });
}

function noteReceived(
  body: Buffer,
  { endMs, storeMs, elapsedMs }: { endMs: number; storeMs: number; elapsedMs: number },
): void {
  const bytes = { bytes: body.length };
  tracing.note?.({ name: 'receive', about: body, startMs: endMs - elapsedMs, endMs, attributes: bytes });
  tracing.note?.({ name: 'store', about: body, startMs: storeMs, endMs });
}

/** Before any of it is read, if its sender says how large it is. */
function refuseLargeBody({ headers }: FastifyRequest): void {
  const sizeBytes = Number(headers['content-length'] ?? 0);
  if (sizeBytes <= MAX_BODY_BYTES) return;
  // Up to a size the rest is passed over, so that its sender gets to see the answer.
  const isPassedOver = sizeBytes <= MAX_DROPPED_BYTES;
  throw new ApiError('body_too_large', isPassedOver ? {} : { headers: { connection: 'close' } });
}

async function keep(batcher: BodyBatcher, body: Buffer): Promise<void> {
  try {
    await batcher.add(body);
  } catch (error) {
    throw error instanceof BodyNotStoredError ? unavailable(error) : error;
  }
}

/** Lowercase only: it is the one form that upstream sends, and one accepted form is one fewer to reason about. */
const HEADER = /^sha256=([0-9a-f]{64})$/;

/** Whether a header (X-Hub-Signature-256) has the form of a signature, before there is a body to compare it with. */
function isUpstreamSignature(header: unknown): header is string {
  return typeof header === 'string' && HEADER.test(header);
}

/**
 * Whether `header` (X-Hub-Signature-256) signs exactly `rawBody` with one of the app secrets; several are in force
 * while a secret is exchanged. Constant time for a header of the right form. Never throws: a missing or malformed
 * header and an empty list are simply false, and an empty secret is skipped because anybody could sign with it.
 */
export function verifyUpstreamSignature(
  rawBody: Uint8Array,
  header: string | undefined,
  secrets: readonly string[],
): boolean {
  const hex = typeof header === 'string' ? HEADER.exec(header)?.[1] : undefined;
  if (hex === undefined) return false;
  const given = Buffer.from(hex, 'hex');
  let verified = false;
  for (const secret of secrets) {
    if (secret === '') continue;
    const expected = createHmac('sha256', keyOf(secret)).update(rawBody).digest();
    // No early exit, so that the time does not tell which secret matched.
    verified = timingSafeEqual(given, expected) || verified;
  }
  return verified;
}

/** Making a key anew costs more than the signature of a short body. */
const keys = new Map<string, KeyObject>();

function keyOf(secret: string): KeyObject {
  const key = keys.get(secret) ?? createSecretKey(secret, 'utf8');
  keys.set(secret, key);
  return key;
}

/** Why a body was not acknowledged; upstream should send it again. */
export class BodyNotStoredError extends Error {
  readonly reason: 'too_many_waiting' | 'too_slow' | 'not_stored';
  constructor(reason: BodyNotStoredError['reason'], cause?: unknown) {
    super(`The body was not stored: ${reason}`, { cause });
    this.name = 'BodyNotStoredError';
    this.reason = reason;
  }
}

export type BodyBatcherOptions = {
  /** Commits all bodies or none. */
  store: (bodies: readonly Buffer[]) => Promise<void>;
  /** Whether a failed `store` says nothing about the bodies, so that storing them one by one is no use. */
  isTransient: (error: unknown) => boolean;
  /** Told of a body that fails even alone: the operator must find out why. */
  onPoison: (error: unknown, sizeBytes: number) => void;
  maxBatchBodies: number;
  /** A larger body goes alone. */
  maxBatchBytes: number;
  /** Of all bodies that wait or are being committed; more are refused. */
  maxWaitingBytes: number;
  /** After this time a body is answered for as not stored, and the next batch no longer waits for its batch. */
  commitTimeoutMs: number;
  /** How long a batch that hangs counts against the three that may; longer than a statement may take at all. */
  abandonAfterMs: number;
};

type Waiting = { body: Buffer; settle: (error: BodyNotStoredError | null) => void; isSettled: boolean };

const MAX_HANGING_BATCHES = 3;

/**
 * Group commit: all bodies that wait go to the database in one statement, and the next batch starts when the former
 * is committed. No body waits for a group to fill, so a lone body is as fast as it can be.
 */
export class BodyBatcher {
  readonly #options: BodyBatcherOptions;
  #queue: Waiting[] = [];
  #waitingBytes = 0;
  #hangingBatches = 0;
  #running: Promise<void> | null = null;

  constructor(options: BodyBatcherOptions) {
    this.#options = options;
  }

  /** Resolves once the body is committed. Throws BodyNotStoredError; the body may then be stored or not. */
  async add(body: Buffer): Promise<void> {
    const sizeBytes = Math.max(body.length, 1);
    if (this.#waitingBytes + sizeBytes > this.#options.maxWaitingBytes)
      throw new BodyNotStoredError('too_many_waiting');
    this.#waitingBytes += sizeBytes;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = {
      body,
      isSettled: false,
      settle: (error) => {
        if (waiting.isSettled) return;
        waiting.isSettled = true;
        clearTimeout(timer);
        this.#waitingBytes -= sizeBytes;
        if (error === null) resolve();
        else reject(error);
      },
    };
    const tooSlow = () => waiting.settle(new BodyNotStoredError('too_slow'));
    const timer = setTimeout(tooSlow, this.#options.commitTimeoutMs);
    this.#queue.push(waiting);
    this.#running ??= Promise.resolve().then(() => this.#runBatches());
    await promise;
  }

  /** Resolves when no body waits any more. */
  async drained(): Promise<void> {
    await this.#running;
  }

  async #runBatches(): Promise<void> {
    while (this.#queue.length > 0) {
      if (this.#hangingBatches >= MAX_HANGING_BATCHES) await pause(this.#options.commitTimeoutMs / 20).ended;
      else await this.#runBatch(this.#takeBatch());
      this.#queue = this.#queue.filter((waiting) => !waiting.isSettled);
    }
    this.#running = null;
  }

  /** The oldest bodies that fit into one batch; always one at least. */
  #takeBatch(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { body } of this.#queue) {
      bytes += body.length;
      if (count > 0 && (bytes > this.#options.maxBatchBytes || count === this.#options.maxBatchBodies)) break;
      count += 1;
    }
    const batch = this.#queue.slice(0, count);
    this.#queue = this.#queue.slice(count);
    return batch;
  }

  /** Waits for the batch to be committed, but no longer than the time-out: a hanging one is left behind. */
  async #runBatch(batch: readonly Waiting[]): Promise<void> {
    const committed = commitBatch(this.#options, batch);
    if (await isDoneWithin(committed, this.#options.commitTimeoutMs)) return;
    for (const waiting of batch) waiting.settle(new BodyNotStoredError('too_slow'));
    this.#hangingBatches += 1;
    void isDoneWithin(committed, this.#options.abandonAfterMs).then(() => {
      this.#hangingBatches -= 1;
    });
  }
}

/** Never throws: each body of the batch is told on its own. */
async function commitBatch(options: BodyBatcherOptions, batch: readonly Waiting[]): Promise<void> {
  try {
    await options.store(batch.map(({ body }) => body));
    for (const waiting of batch) waiting.settle(null);
  } catch (error) {
    if (batch.length > 1 && !options.isTransient(error)) {
      // The bodies are at fault, not the database: the one that is must not take the others with it.
      for (const waiting of batch) if (!waiting.isSettled) await commitBatch(options, [waiting]);
      return;
    }
    if (!options.isTransient(error)) options.onPoison(error, batch[0]?.body.length ?? 0);
    for (const waiting of batch) waiting.settle(new BodyNotStoredError('not_stored', error));
  }
}

async function isDoneWithin(work: Promise<void>, timeoutMs: number): Promise<boolean> {
  const timeOut = pause(timeoutMs);
  const isDone = await Promise.race([work.then(() => true), timeOut.ended.then(() => false)]);
  timeOut.cancel();
  return isDone;
}

/** Keeps no process alive. */
function pause(durationMs: number): { ended: Promise<void>; cancel: () => void } {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, durationMs).unref();
  return { ended, cancel: () => clearTimeout(timer) };
}
