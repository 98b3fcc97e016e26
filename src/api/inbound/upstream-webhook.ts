import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { SignedBody } from '../../engine/inbox/bodies.ts';
import { insertBodies, type KeepAtOnce } from '../../ingest/intake/store-bodies.ts';
import type { AppSecret } from '../../platform/config/app-secret.ts';
import type { Config } from '../../platform/config/config.ts';
import { MAX_DROPPED_BYTES, readBody } from '../../platform/http/read-body.ts';
import { tracing } from '../../platform/metrics/metrics.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { isDataError, isTransientError } from '../../platform/postgres/error-class.ts';
import { ApiError, unavailable } from '../errors/api-error.ts';
import { guardBodies } from '../shares/client-shares.ts';
import { BodyBatcher, type BodyBatcherOptions, BodyNotStoredError } from './body-batcher.ts';
import { entriesOf, type ReceivedBody } from './bound-secrets.ts';

/** Less than the 5 seconds after which upstream is said to give up. */
const COMMIT_TIMEOUT_MS = 4_000;

/** An insert that takes longer than upstream waits is of no use; what is not even cancelled has lost its server. */
export const INGRESS_TIMEOUTS = { statementMs: COMMIT_TIMEOUT_MS, answerMs: COMMIT_TIMEOUT_MS + 1_000 };

/** More than the time-out of the answer: what hangs longer has lost its connection. */
const ABANDON_AFTER_MS = INGRESS_TIMEOUTS.answerMs + 1_000;

/** Where the upstream platform sends its webhooks. Nothing is parsed here and nothing is asked of Temporal. */
export async function upstreamWebhookRoutes(
  scope: FastifyInstance,
  { config, database, keepAtOnce }: { config: Config; database: Database; keepAtOnce?: KeepAtOnce },
): Promise<void> {
  const batcher = new BodyBatcher({
    store:
      keepAtOnce === undefined
        ? (bodies) => insertBodies(database, bodies)
        : storeAtOnce(database, keepAtOnce),
    isTransient: (error) => !isDataError(error),
    isAway: isTransientError,
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

/**
 * Stores at once what can be. The rest is kept the usual way, behind the bodies of earlier batches that let this one start
 * and are not answered for: one of them may come to be kept the usual way too.
 */
function storeAtOnce(database: Database, keepAtOnce: KeepAtOnce): BodyBatcherOptions['store'] {
  const underWay = new Set<Promise<unknown>>();
  return async (bodies, startNext) => {
    const earlier = [...underWay];
    const { promise: stored, resolve: end } = Promise.withResolvers<void>();
    const unanswered = setTimeout(end, COMMIT_TIMEOUT_MS).unref();
    underWay.add(stored);
    void stored.then(() => {
      clearTimeout(unanswered);
      underWay.delete(stored);
    });
    const insert = async (some: readonly SignedBody[]) => {
      if (some.length === 0) return;
      await Promise.all(earlier);
      await insertBodies(database, some);
    };
    const { usual, tried, isKept } = keepAtOnce(bodies, startNext, stored);
    try {
      await Promise.all([insert(usual), isKept.then((kept) => (kept ? undefined : insert(tried)))]);
    } finally {
      end();
    }
  };
}

/** Reads a request body as the bytes that were sent. Throws ApiError 413. */
async function readRawBody(payload: Readable): Promise<Buffer> {
  const body = await readBody(payload, MAX_BODY_BYTES);
  if (body === null) throw new ApiError('body_too_large');
  return body;
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
): Promise<ReceivedBody | null> {
  const [free, bound] = [
    appSecrets.filter(({ wabaIds }) => wabaIds === null),
    appSecrets.filter(({ wabaIds }) => wabaIds !== null),
  ];
  const secretsOf = (some: readonly AppSecret[]) => some.map(({ secret }) => secret);
  if (verifyUpstreamSignature(body, header, secretsOf(free)))
    return { body, signedFor: null, foreignEntries: 0 };
  const signers = bound.filter(({ secret }) => verifyUpstreamSignature(body, header, [secret]));
  if (signers.length === 0) return null;
  return await entriesOf(database, body, new Set(signers.flatMap(({ wabaIds }) => wabaIds ?? [])));
}

/** Upstream sends up to 3 MB; its unit is not known, so the larger one holds. */
const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** Whose bodies they are is known when they are whole. */
const BODY_LIMITS = { maxBytes: 128 * 1024 * 1024, maxBytesPerOwner: 32 * 1024 * 1024 };

const EMPTY = Buffer.alloc(0);

/** POST /upstream/webhook: a body with a valid signature is kept as it is; 200 says that it is committed. */
function receiveWebhook(
  scope: FastifyInstance,
  tools: { appSecrets: readonly AppSecret[]; batcher: BodyBatcher; database: Database },
): void {
  const { appSecrets, batcher, database } = tools;
  guardBodies(scope, BODY_LIMITS);
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    '*',
    async (_request: FastifyRequest, payload: Readable) => await readRawBody(payload),
  );
  scope.route({
    method: 'POST',
    url: '/upstream/webhook',
    bodyLimit: MAX_BODY_BYTES,
    config: { keepsBytes: true },
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
      await keep(batcher, signed);
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

async function keep(batcher: BodyBatcher, body: SignedBody): Promise<void> {
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

/** Making a key again costs more than the signature of a short body. */
const keys = new Map<string, KeyObject>();

function keyOf(secret: string): KeyObject {
  const key = keys.get(secret) ?? createSecretKey(secret, 'utf8');
  keys.set(secret, key);
  return key;
}
