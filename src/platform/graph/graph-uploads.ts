import { parseObject } from './graph-connection.ts';
import { graphErrorOf, noAnswer } from './graph-error.ts';
import type { PassedAnswer, PassedCall } from './graph-pass.ts';
import { watched } from './watched-source.ts';

/** How long upstream may take to get the bytes of a file. */
export const SESSION_TIMEOUT_MS = 90_000;

const MAX_ID_CHARS = 512;
const MAX_HANDLE_CHARS = 8_192;

type Call = Pick<PassedCall, 'path' | 'query'>;

export type SessionFile = { mimeType: string; fileName: string; sizeBytes: number };

/**
 * Begins an upload for the app of the access token: its handle is good for that app alone, and `app` stands for it
 * (upstream's collection of requests, "Resumable Upload").
 */
export function beginSession({ mimeType, fileName, sizeBytes }: SessionFile): Call {
  const query = { file_name: fileName, file_length: String(sizeBytes), file_type: mimeType };
  return { path: ['app', 'uploads'], query: new URLSearchParams(query) };
}

/** The call of a session whose id upstream gave, `upload:…`, with or without a query behind it. */
export function ofSession(sessionId: string): Call {
  const [path = '', query = ''] = sessionId.split(/\?(.*)/s, 2);
  return { path: [path], query: new URLSearchParams(query) };
}

/** The id of a new session; null: upstream gave none. */
export function sessionIdIn({ text }: PassedAnswer): string | null {
  const id = parseObject(text)?.id;
  return typeof id === 'string' && /^upload:[^/]+$/.test(id) && id.length <= MAX_ID_CHARS ? id : null;
}

export type SizedFile = SessionFile & { body: AsyncIterable<Uint8Array> };

/** Uploads a file as a whole; the handle that upstream gives it. Throws GraphError, or what `body` throws. */
export async function uploadForHandle(
  pass: (call: Omit<PassedCall, 'token' | 'version'>) => Promise<PassedAnswer>,
  { body: bytes, ...file }: SizedFile,
): Promise<string> {
  const begun = await pass({ ...beginSession(file), method: 'POST', body: null });
  const sessionId = sessionIdIn(succeeded(begun));
  if (sessionId === null) throw noAnswer('its answer names no upload session');
  const source = watched(bytes);
  const body = { file: source.bytes, offset: 0, sizeBytes: file.sizeBytes };
  const call = { ...ofSession(sessionId), method: 'POST', body, timeoutMs: SESSION_TIMEOUT_MS } as const;
  const answer = await pass(call).catch((error: unknown) => {
    source.throwFailure();
    throw error;
  });
  const handle = parseObject(succeeded(answer).text)?.h;
  if (typeof handle === 'string' && handle !== '' && handle.length <= MAX_HANDLE_CHARS) return handle;
  throw noAnswer('its answer has no handle');
}

function succeeded(answer: PassedAnswer): PassedAnswer {
  const { status, retryAfter, text } = answer;
  if (status >= 200 && status <= 299) return answer;
  throw graphErrorOf({ status, retryAfter, body: parseObject(text) });
}
