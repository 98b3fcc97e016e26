import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { StoredMedia } from '../media-store.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';

const CHUNK_BYTES = 64 * 1024;
const TOO_LARGE_BYTES = 100 * 1024 * 1024 + 1;

type DownloadRoute = { Params: { id: string }; Querystring: { ext?: string; hash?: string } };

function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    yield bytes.subarray(start, start + CHUNK_BYTES);
  }
}

function* repeatedBytes(sizeBytes: number): Generator<Buffer> {
  const chunk = Buffer.alloc(CHUNK_BYTES, 'x');
  for (let left = sizeBytes; left > 0; left -= CHUNK_BYTES) {
    yield chunk.subarray(0, Math.min(left, CHUNK_BYTES));
  }
}

function flipped(bytes: Buffer): Buffer {
  const changed = Buffer.from(bytes);
  changed.writeUInt8((changed.at(0) ?? 0) ^ 0xff, 0);
  return changed;
}

function sendBytes(reply: FastifyReply, media: StoredMedia, sizeBytes: number, body: Iterable<Buffer>) {
  return reply
    .header('content-type', media.mimeType)
    .header('content-length', sizeBytes)
    .send(Readable.from(body, { objectMode: false }));
}

/** Sends half of the bytes, then cuts the connection. */
function sendHalfThenReset(reply: FastifyReply, media: StoredMedia): void {
  reply.hijack();
  reply.raw.writeHead(200, { 'content-type': media.mimeType, 'content-length': media.bytes.length });
  const half = media.bytes.subarray(0, Math.ceil(media.bytes.length / 2));
  reply.raw.write(half, () => setTimeout(() => reply.raw.socket?.resetAndDestroy(), 20).unref());
}

/** GET /media-download/{id}?ext&hash: the bytes of a media object, behind an address that ends. */
export function registerMediaDownload(app: FastifyInstance, context: UpstreamContext): void {
  app.get<DownloadRoute>('/media-download/:id', async (request, reply) => {
    const { id } = request.params;
    const media = context.media.find(id);
    if (media === undefined || !context.mediaUrls.isValid(id, request.query)) {
      return reply.code(404).type('text/plain').send('URL signature expired');
    }
    const fault = context.faults.take('media_download', id);
    const onReset = () => sendHalfThenReset(reply, media);
    if (fault !== undefined && (await answerFault(context, reply, fault, { id, onReset }))) {
      return reply;
    }
    switch (fault?.kind) {
      case 'expired':
        return reply.code(404).type('text/plain').send('URL signature expired');
      case 'too_large':
        return sendBytes(reply, media, TOO_LARGE_BYTES, repeatedBytes(TOO_LARGE_BYTES));
      case 'wrong_hash':
        return sendBytes(reply, media, media.bytes.length, chunksOf(flipped(media.bytes)));
      default:
        return sendBytes(reply, media, media.bytes.length, chunksOf(media.bytes));
    }
  });
}
