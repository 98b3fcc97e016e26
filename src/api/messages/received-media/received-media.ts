import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { findServedMedia, type ServedMedia } from '../../../messages/media.ts';
import type { ObjectStore } from '../../../platform/object-store/object-store.ts';
import { ObjectMissing, ObjectStoreUnavailable } from '../../../platform/object-store/object-store-error.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { notFound, unavailable } from '../../errors/api-error.ts';
import { createBatchedLookup } from '../../plugins/batched-lookup.ts';
import { type ByteRange, parseByteRange } from './byte-range.ts';
import { contentDisposition } from './content-disposition.ts';
import { isNoneMatch, isRangeCurrent } from './entity-tag.ts';
import { registerProductPlaceholder } from './product-placeholder.ts';
import { servedFileName } from './served-file-name.ts';

export type ReceivedMediaTools = { database: Database; objectStore: ObjectStore };

/** Nothing else is looked up: neither a path nor an object key is ever made from a URL. */
const TOKEN = /^[A-Za-z0-9_-]{22,64}$/;

/** A customer's file must not run as a page of ours; it may be embedded by the tenant's pages. */
const SAFE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'cross-origin',
  'referrer-policy': 'no-referrer',
  'cache-control': 'private, max-age=86400, immutable',
  'accept-ranges': 'bytes',
};

/** GET and HEAD /received_media/:token, and the product placeholder image. Needs no API key: the token is the key. */
export function receivedMediaRoutes(tools: ReceivedMediaTools): FastifyPluginAsync {
  return async (app) => {
    registerProductPlaceholder(app);
    registerFiles(app, tools);
  };
}

function registerFiles(app: FastifyInstance, { database, objectStore }: ReceivedMediaTools): void {
  const find = async (tokens: readonly string[]) => {
    const files = await findServedMedia(database, tokens);
    return new Map(files.map((file) => [file.objectKey, file]));
  };
  const findFile = createBatchedLookup({ find, maxUnderWay: 1 });
  app.route<{ Params: { token: string } }>({
    method: ['GET', 'HEAD'],
    url: '/received_media/:token',
    handler: async (request, reply) => {
      const { token } = request.params;
      const file = TOKEN.test(token) ? await findFile(token) : null;
      if (file === null) throw notFound();
      return await serve(objectStore, file, request, reply);
    },
  });
}

async function serve(
  objectStore: ObjectStore,
  file: ServedMedia,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const etag = `"${file.sha256}"`;
  if (isNoneMatch(request.headers['if-none-match'], etag)) {
    return reply.code(304).headers(SAFE_HEADERS).header('etag', etag).send();
  }
  // A Range means something for GET only (RFC 9110 §14.2).
  const wantsPart = request.method === 'GET' && isRangeCurrent(headerOf(request, 'if-range'), etag);
  const range = wantsPart ? parseByteRange(request.headers.range, file.sizeBytes) : 'whole';
  if (range === 'unsatisfiable') {
    const headers = { ...SAFE_HEADERS, 'content-range': `bytes */${file.sizeBytes}`, etag };
    return reply.code(416).headers(headers).send();
  }
  const body = request.method === 'HEAD' ? null : await open(objectStore, file, range, request);
  const disposition = contentDisposition(file.servedType, servedFileName(file));
  reply.headers(SAFE_HEADERS).headers({
    etag,
    'content-type': file.servedType,
    'content-length': range === 'whole' ? file.sizeBytes : range.end - range.start + 1,
    'content-disposition': disposition,
  });
  if (range !== 'whole') {
    reply.code(206).header('content-range', `bytes ${range.start}-${range.end}/${file.sizeBytes}`);
  }
  return body === null ? reply.send() : reply.send(body);
}

/** The bytes from the store. Fastify destroys the stream when the client goes away. */
async function open(
  objectStore: ObjectStore,
  file: ServedMedia,
  range: ByteRange | 'whole',
  request: FastifyRequest,
) {
  try {
    return await objectStore.getRange(file.objectKey, range === 'whole' ? undefined : range);
  } catch (error) {
    if (error instanceof ObjectStoreUnavailable) throw unavailable(error);
    if (!(error instanceof ObjectMissing)) throw error;
    request.log.error(
      { err: error, messageId: file.messageId },
      'a stored file is missing in the object store',
    );
    throw notFound();
  }
}

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
