import { readFileSync } from 'node:fs';
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { findErasedKeys, findServedMedia, type ServedMedia } from '../../../features/messages/media/media.ts';
import type { MediaUrls, SignedQuery } from '../../../features/messages/media/media-urls.ts';
import { essenceOf } from '../../../features/messages/send/uploaded-media.ts';
import { countedAddress } from '../../../platform/http/counted-address.ts';
import type { ObjectStore } from '../../../platform/object-store/object-store.ts';
import { ObjectMissing, ObjectStoreUnavailable } from '../../../platform/object-store/store-errors.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { ApiError, notFound, unavailable } from '../../errors/api-error.ts';
import { createBatchedLookup } from '../../plugins/batched-lookup.ts';
import {
  type DownloadShares,
  FILE_LIMITS,
  goneSignal,
  shareDownloads,
} from '../../shares/download-shares.ts';

export type ReceivedMediaTools = {
  database: Database;
  objectStore: ObjectStore;
  mediaUrls: Pick<MediaUrls, 'check'>;
};

/** Nothing else is looked up: neither a path nor an object key is ever made from a URL. */
const TOKEN = /^[A-Za-z0-9_-]{22,64}$/;

/** A customer's file must not run as a page of ours; it may be embedded by the tenant's pages. */
const SAFE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'cross-origin',
  'referrer-policy': 'no-referrer',
  // A file may expire or be erased at any time: the ETag makes asking again cheap.
  'cache-control': 'private, no-cache',
  'accept-ranges': 'bytes',
};

/** GET and HEAD /received_media/:token, and the product placeholder image. Needs no API key: the token is the key. */
export function receivedMediaRoutes(tools: ReceivedMediaTools): FastifyPluginAsync {
  return async (app) => {
    registerProductPlaceholder(app);
    registerFiles(app, tools);
  };
}

function registerFiles(app: FastifyInstance, { database, objectStore, mediaUrls }: ReceivedMediaTools): void {
  const find = async (tokens: readonly string[]) => {
    const files = await findServedMedia(database, tokens);
    const found = new Map<string, ServedMedia | 'erased'>(files.map((file) => [file.objectKey, file]));
    const missing = tokens.filter((token) => !found.has(token));
    for (const token of await findErasedKeys(database, missing)) found.set(token, 'erased');
    return found;
  };
  const findFile = createBatchedLookup({ find, maxUnderWay: 1 });
  const downloads = shareDownloads(app, FILE_LIMITS);
  app.route<{ Params: { token: string } }>({
    method: ['GET', 'HEAD'],
    url: '/received_media/:token',
    handler: async (request, reply) => {
      const { token } = request.params;
      const file = TOKEN.test(token) ? await findFile(token) : null;
      if (file === null) throw notFound();
      if (file === 'erased') throw new ApiError('erased');
      const verdict = await mediaUrls.check(file, signedQueryOf(request.query));
      if (verdict === 'expired') throw new ApiError('media_url_expired');
      if (verdict === 'wrong') throw new ApiError('invalid_media_signature');
      return await serve({ objectStore, downloads }, file, request, reply);
    },
  });
}

/** Of what is there twice, nothing counts. */
function signedQueryOf(query: unknown): SignedQuery {
  const { expires, signature } = query as Record<string, unknown>;
  return {
    ...(typeof expires === 'string' && { expires }),
    ...(typeof signature === 'string' && { signature }),
  };
}

type ServeTools = { objectStore: ObjectStore; downloads: DownloadShares };

async function serve(
  tools: ServeTools,
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
  const body = request.method === 'HEAD' ? null : await open(tools, file, range, { request, reply });
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

/** Nothing is fetched for a client that has gone away, and Fastify then ends the stream. */
async function open(
  { objectStore, downloads }: ServeTools,
  file: ServedMedia,
  range: ByteRange | 'whole',
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
) {
  const gone = goneSignal(reply);
  const { objectKey, tenantId } = file;
  const owners = { file: objectKey, address: countedAddress(request.ip), tenant: tenantId };
  try {
    return await downloads.open(owners, gone, () =>
      objectStore.getRange(objectKey, range === 'whole' ? undefined : range, gone),
    );
  } catch (error) {
    if (error instanceof ObjectStoreUnavailable || gone.aborted) throw unavailable(error);
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

const ENTITY_TAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;

/** Whether an If-None-Match header (RFC 9110 §13.1.2, weak comparison) names this strong tag, quotes included. */
export function isNoneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === '*') return true;
  return (header.match(ENTITY_TAG) ?? []).some((tag) => tag.replace(/^W\//, '') === etag);
}

/** Whether a Range may be honoured: If-Range (§13.1.5) is absent or is this strong tag. We give out no dates. */
export function isRangeCurrent(header: string | undefined, etag: string): boolean {
  return header === undefined || header.trim() === etag;
}

const IMAGE = readFileSync(new URL('./product-placeholder.png', import.meta.url));

/** GET and HEAD /assets/product-placeholder.png: stands in for the image of a product that has none. */
function registerProductPlaceholder(app: FastifyInstance): void {
  app.get('/assets/product-placeholder.png', async (_request, reply) =>
    reply
      .headers({
        'content-type': 'image/png',
        'cache-control': 'public, max-age=86400',
        'cross-origin-resource-policy': 'cross-origin',
      })
      .send(IMAGE),
  );
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'video/mp4': 'mp4',
  'video/3gpp': '3gp',
  'video/webm': 'webm',
  'audio/ogg': 'ogg',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/aac': 'aac',
  'audio/amr': 'amr',
  'application/pdf': 'pdf',
};

/** The name a file is offered under: the customer's own, or the kind of media and the message's id. */
function servedFileName(file: ServedMedia): string {
  if (file.fileName !== null && file.fileName.trim() !== '') return file.fileName;
  return `${file.mediaType}-${file.messageId}.${EXTENSIONS[essenceOf(file.servedType)] ?? 'bin'}`;
}

/** Both ends inclusive. */
type ByteRange = { start: number; end: number };

const SINGLE_RANGE = /^bytes=\s*(\d*)-(\d*)\s*$/i;

/**
 * What a Range header (RFC 9110 §14.2) asks of a file of `sizeBytes`: a part, `unsatisfiable`, or `whole` for no header,
 * several ranges, other units and malformed text, all of which a server may ignore.
 */
export function parseByteRange(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | 'whole' | 'unsatisfiable' {
  const match = SINGLE_RANGE.exec(header ?? '');
  if (match === null) return 'whole';
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? 'whole' : suffixRange(Number(last), sizeBytes);
  const start = Number(first);
  const end = last === '' ? Number.POSITIVE_INFINITY : Number(last);
  if (end < start) return 'whole';
  if (start >= sizeBytes) return 'unsatisfiable';
  return { start, end: Math.min(end, sizeBytes - 1) };
}

function suffixRange(lengthBytes: number, sizeBytes: number): ByteRange | 'unsatisfiable' {
  if (lengthBytes === 0 || sizeBytes === 0) return 'unsatisfiable';
  return { start: Math.max(sizeBytes - lengthBytes, 0), end: sizeBytes - 1 };
}

const MAX_NAME_CHARS = 150;

/** Types that a browser may show by itself; everything else is offered as a download. */
const INLINE_TYPE =
  /^(?:image\/(?:jpeg|png|webp|gif)|audio\/[a-z0-9.+-]+|video\/[a-z0-9.+-]+|application\/pdf)(?:\s*;|$)/;

/**
 * The Content-Disposition of a stored file. The name, which the customer chose, is only ever a hint: path separators,
 * control and direction characters and quotes are taken out; `filename*` (RFC 8187) holds what is not ASCII.
 */
export function contentDisposition(contentType: string, fileName: string): string {
  const kind = INLINE_TYPE.test(contentType) ? 'inline' : 'attachment';
  const name = safeFileName(fileName);
  const ascii = name.replace(/[^\x20-\x7e]/gu, '_').replace(/[%]/g, '_');
  const plain = `${kind}; filename="${ascii}"`;
  return ascii === name ? plain : `${plain}; filename*=UTF-8''${percentEncode(name)}`;
}

function safeFileName(fileName: string): string {
  const cleaned = fileName
    .toWellFormed()
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .replace(/["\\/:*?<>|;]/g, '_')
    .replace(/\s+/g, ' ')
    .replace(/^[.\s]+/, '')
    .replace(/(?<![.\s])[.\s]+$/, '');
  const short = cutKeepingExtension(cleaned);
  return short === '' ? 'file' : short;
}

function cutKeepingExtension(name: string): string {
  const characters = [...name];
  if (characters.length <= MAX_NAME_CHARS) return name;
  const extension = /\.[A-Za-z0-9]{1,8}$/.exec(name)?.[0] ?? '';
  return characters.slice(0, MAX_NAME_CHARS - extension.length).join('') + extension;
}

/** RFC 8187 leaves fewer characters bare than encodeURIComponent does. */
function percentEncode(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*!]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
