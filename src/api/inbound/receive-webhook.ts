import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isUpstreamSignature } from '../../inbound/split/upstream-signature.ts';
import type { AppSecret } from '../../platform/config/app-secrets.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { ApiError, unavailable } from '../errors/api-error.ts';
import { guardBodies } from '../shares/body-guard.ts';
import { type BodyBatcher, BodyNotStoredError } from './body-batcher.ts';
import { MAX_DROPPED_BYTES, readRawBody } from './raw-body.ts';
import { readSigned } from './signed-body.ts';

/** Upstream sends up to 3 MB; its unit is not known, so the larger one holds. */
const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** Whose bodies they are is known when they are whole. */
const BODY_LIMITS = { maxBytes: 128 * 1024 * 1024, maxBytesPerAddress: 32 * 1024 * 1024 };

const EMPTY = Buffer.alloc(0);

/** POST /upstream/webhook: a body with a valid signature is kept as it is; 200 says that it is committed. */
export function receiveWebhook(
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
