import { createHash, timingSafeEqual } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { findNumberOwners } from '../../accounts/accounts.ts';
import { insertBodies } from '../../inbound/inbox/inbox.ts';
import { readEntries, withoutEntries } from '../../inbound/split/foreign-entries.ts';
import { isUpstreamSignature, verifyUpstreamSignature } from '../../inbound/split/upstream-signature.ts';
import type { Config } from '../../platform/config/config.ts';
import type { AppSecret } from '../../platform/config/read-settings.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { isDataError } from '../../platform/postgres/error-class.ts';
import { ApiError, unavailable } from '../errors/api-error.ts';
import { guardBodies } from '../shares/body-guard.ts';
import { type BodyBatcher, BodyNotStoredError, createBodyBatcher } from './body-batcher.ts';

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
  const batcher = createBodyBatcher({
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

/** Compares hashes, which have one length whatever is sent. An empty token in the settings verifies nobody. */
function isSameToken(given: string, expected: string): boolean {
  const [left, right] = [given, expected].map((token) => createHash('sha256').update(token).digest());
  return expected !== '' && left !== undefined && right !== undefined && timingSafeEqual(left, right);
}

/** What is taken of a body, and how much is not because whoever signed it may not speak for its WABA. */
type SignedBody = { body: Buffer; foreignEntries: number };

/**
 * Finds out what a body may say: all of it when a secret signed it that is bound to no WABA, otherwise the entries of
 * the WABAs that its secrets may speak for. Null: nothing, or nobody of ours signed it.
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
  return await ofWabas(database, body, new Set(signers.flatMap(({ wabaIds }) => wabaIds ?? [])));
}

/** An entry is of the WABA that it names, and of those whose numbers it names: events belong to the owner of the number. */
async function ofWabas(
  database: Database,
  body: Buffer,
  wabaIds: ReadonlySet<string>,
): Promise<SignedBody | null> {
  const read = readEntries(body);
  if (read === null) return null;
  const owners = await findNumberOwners(database, [
    ...new Set(read.entries.flatMap((entry) => entry.phoneNumberIds)),
  ]);
  const isOwn = (wabaId: string | null | undefined) => typeof wabaId === 'string' && wabaIds.has(wabaId);
  const foreign = read.entries.filter(
    (entry) =>
      !isOwn(entry.wabaId) ||
      entry.phoneNumberIds.some((id) => owners.has(id) && !isOwn(owners.get(id)?.wabaId)),
  );
  if (foreign.length === 0) return { body, foreignEntries: 0 };
  if (foreign.length === read.entries.length) return null;
  return { body: withoutEntries(read, foreign), foreignEntries: foreign.length };
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
      await keep(batcher, signed.body);
      return reply.type('text/plain; charset=utf-8').send('');
    },
  });
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
