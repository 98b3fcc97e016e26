import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { request } from 'undici';
import { USER_AGENT } from '../http/user-agent.ts';
import {
  asGraphError,
  checkedMediaUrl,
  contentOf,
  firstOf,
  type GraphConnection,
  graphGet,
  graphUrl,
  type MediaHostRules,
  noSuchObject,
  objectOf,
  readText,
} from './graph-connection.ts';
import { GraphError, graphErrorOf, noAnswer } from './graph-error.ts';
import { watched } from './watched-source.ts';

/** Within what an activity may take. */
export const UPLOAD_TIMEOUT_MS = 90_000;

/** What upstream knows of a media object; `url` lives for five minutes and needs the access token. */
export type MediaMetadata = {
  url: string;
  mimeType: string | null;
  /** Hexadecimal, or base64, as upstream gave it. */
  sha256: string | null;
  sizeBytes: number | null;
};

const MEDIA_ID = /^\d{1,64}$/;

/**
 * Looks a media object up: `GET /{media-id}`. An id that is no number would name another object of Graph. Without `phone_number_id`, with which upstream returns an error for
 * some inbound media. Throws GraphError.
 */
export async function lookUpMedia(
  connection: GraphConnection,
  mediaId: string,
  token: string,
  signal?: AbortSignal,
): Promise<MediaMetadata> {
  if (!MEDIA_ID.test(mediaId)) throw noSuchObject();
  const answer = await graphGet(connection, { path: [mediaId], token, signal });
  const { url } = answer;
  if (typeof url !== 'string' || url === '') throw noAnswer('its answer names no media address');
  return {
    url,
    mimeType: textOrNull(answer.mime_type),
    sha256: textOrNull(answer.sha256),
    sizeBytes: sizeOf(answer.file_size),
  };
}

/** `file_size` is a number in practice and a string in the platform's own OpenAPI file. */
function sizeOf(value: unknown): number | null {
  const size = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof size === 'number' && Number.isSafeInteger(size) && size >= 0 ? size : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** A download under way. Reading `body` throws GraphError when the connection fails or stalls. */
export type MediaDownload = {
  body: AsyncIterable<Uint8Array>;
  contentType: string | null;
  /** Ends the download when the body is not going to be read to its end; harmless after that. */
  discard(): void;
};

/**
 * Starts to download media with the access token, which goes to allowed hosts only and over no redirect.
 * Throws MediaHostRefused and GraphError; when `signal` aborts, its reason.
 */
export async function downloadMedia(
  { agent }: GraphConnection,
  rules: MediaHostRules,
  address: string,
  token: string,
  signal?: AbortSignal,
): Promise<MediaDownload> {
  const url = checkedMediaUrl(address, rules);
  const response = await request(url, {
    dispatcher: agent,
    headers: { authorization: `Bearer ${token}`, 'user-agent': USER_AGENT, accept: '*/*' },
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw asGraphError(error);
  });
  const { statusCode, headers, body } = response;
  // An error of an unread body must not end the process.
  body.on('error', () => undefined);
  if (statusCode !== 200) {
    body.destroy();
    throw refusal(statusCode, firstOf(headers['retry-after']));
  }
  const content = contentOf(response);
  content.on('error', () => undefined);
  return {
    body: chunksOf(content, signal),
    contentType: firstOf(headers['content-type']) ?? null,
    discard: () => body.destroy(),
  };
}

function refusal(status: number, retryAfter: string | undefined): GraphError {
  if (status >= 300 && status < 400) {
    return new GraphError({
      httpStatus: status,
      code: null,
      subcode: null,
      message: 'The media address answered with a redirect, which is not followed.',
      transient: true,
    });
  }
  return graphErrorOf({ status, retryAfter, body: null });
}

async function* chunksOf(body: AsyncIterable<Uint8Array>, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    signal?.throwIfAborted();
    throw asGraphError(error);
  }
}

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
  const source = watched(file.body);
  async function* body(): AsyncGenerator<Uint8Array> {
    yield form.head;
    yield* source.bytes;
    yield form.tail;
  }
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
    return idOf(objectOf(answer, await readText(answer)));
  } catch (error) {
    source.throwFailure();
    call.signal.throwIfAborted();
    throw asGraphError(error);
  }
}

function idOf({ id }: Record<string, unknown>): string {
  const isId = typeof id === 'string' && id !== '' && id.length <= MAX_ID_CHARS && !id.includes('\0');
  if (!isId) throw noAnswer('its answer names no media id');
  return id;
}

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
