import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { verifyUpstreamSignature } from '../../domain/upstream/upstream-signature.ts';
import { ApiError, unavailable } from '../errors/api-error.ts';
import { type BodyBatcher, BodyNotStoredError } from './body-batcher.ts';
import { createRawBodyReader } from './raw-body.ts';

/** Upstream sends up to 3 MB; its unit is not known, so the larger one holds. */
const MAX_BODY_BYTES = 3 * 1024 * 1024;
const MAX_READING_BYTES = 128 * 1024 * 1024;

const EMPTY = Buffer.alloc(0);

/** POST /upstream/webhook: a body with a valid signature is kept as it is; 200 says that it is committed. */
export function receiveWebhook(
  scope: FastifyInstance,
  { appSecrets, batcher }: { appSecrets: readonly string[]; batcher: BodyBatcher },
): void {
  const readRawBody = createRawBodyReader({
    maxBodyBytes: MAX_BODY_BYTES,
    maxReadingBytes: MAX_READING_BYTES,
  });
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    '*',
    async (_request: FastifyRequest, payload: Readable) => await readRawBody(payload),
  );
  scope.route({
    method: 'POST',
    url: '/upstream/webhook',
    onRequest: async (request) => {
      if (request.headers['x-hub-signature-256'] === undefined) throw new ApiError('invalid_signature');
      // Whatever upstream calls it, and however it spells that, the body is bytes here.
      request.headers['content-type'] = 'application/octet-stream';
    },
    handler: async (request, reply) => {
      const body = Buffer.isBuffer(request.body) ? request.body : EMPTY;
      const header = request.headers['x-hub-signature-256'];
      if (typeof header !== 'string' || !verifyUpstreamSignature(body, header, appSecrets)) {
        throw new ApiError('invalid_signature');
      }
      await keep(batcher, body);
      return reply.type('text/plain; charset=utf-8').send('');
    },
  });
}

async function keep(batcher: BodyBatcher, body: Buffer): Promise<void> {
  try {
    await batcher.add(body);
  } catch (error) {
    throw error instanceof BodyNotStoredError ? unavailable(error) : error;
  }
}
