import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { request } from 'undici';
import {
  asGraphError,
  type GraphConnection,
  graphUrl,
  objectOf,
  readText,
  USER_AGENT,
} from './graph-connection.ts';
import { noAnswer } from './graph-error.ts';

export type MediaUploadCall = {
  phoneNumberId: string;
  token: string;
  /** Its `body` yields exactly `sizeBytes`; what it throws is thrown unchanged. The caller closes it. */
  file: { mimeType: string; fileName: string; sizeBytes: number; body: AsyncIterable<Uint8Array> };
  timeoutMs: number;
  signal: AbortSignal;
};

const MAX_ID_CHARS = 512;

/**
 * Gives upstream a file to send: `POST /{phone number id}/media`, streamed. Returns upstream's id of it, which lives for
 * 30 days. Throws GraphError; when `signal` aborts, its reason.
 */
export async function uploadMedia(connection: GraphConnection, call: MediaUploadCall): Promise<string> {
  const { phoneNumberId, token, file, timeoutMs } = call;
  const form = formAround(file);
  let failure: { error: unknown } | null = null;
  // Not `yield*`: that would hand the file what undici throws into the body when the connection breaks.
  async function* body(): AsyncGenerator<Uint8Array> {
    yield form.head;
    const chunks = file.body[Symbol.asyncIterator]();
    for (;;) {
      const { value, done } = await chunks.next().catch((error: unknown) => {
        failure = { error };
        throw error;
      });
      if (done) break;
      yield value;
    }
    yield form.tail;
  }
  const failed = () => failure as { error: unknown } | null;
  try {
    const answer = await request(graphUrl(connection, [phoneNumberId, 'media']), {
      dispatcher: connection.agent,
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json',
        'content-type': `multipart/form-data; boundary=${form.boundary}`,
        'content-length': String(form.head.length + file.sizeBytes + form.tail.length),
        'user-agent': USER_AGENT,
      },
      body: Readable.from(body(), { objectMode: false }),
      signal: AbortSignal.any([call.signal, AbortSignal.timeout(timeoutMs)]),
    });
    return idOf(objectOf(answer, await readText(answer.body)));
  } catch (error) {
    const source = failed();
    if (source !== null) throw source.error;
    call.signal.throwIfAborted();
    throw asGraphError(error);
  }
}

function idOf({ id }: Record<string, unknown>): string {
  const isId = typeof id === 'string' && id !== '' && id.length <= MAX_ID_CHARS && !id.includes('\0');
  if (!isId) throw noAnswer('its answer names no media id');
  return id;
}

/** What stands before and behind the bytes of the file. */
function formAround({ mimeType, fileName }: { mimeType: string; fileName: string }) {
  const boundary = `heliograph-${randomBytes(16).toString('hex')}`;
  const field = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const head =
    field('messaging_product', 'whatsapp') +
    field('type', mimeType) +
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${quoted(fileName)}"\r\n` +
    `Content-Type: ${mimeType}\r\n\r\n`;
  return { boundary, head: Buffer.from(head), tail: Buffer.from(`\r\n--${boundary}--\r\n`) };
}

/** As browsers write a file's name into a form (WHATWG HTML, multipart/form-data encoding algorithm). */
function quoted(fileName: string): string {
  return fileName.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
}
