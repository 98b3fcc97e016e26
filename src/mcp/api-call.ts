import { linkedAbort } from '../platform/http/linked-abort.ts';
import { parseRetryAfter } from '../platform/http/retry-after.ts';
import { isMembers } from '../platform/json/json-members.ts';

export type ApiAccess = { url: string; key: string };

export type ApiRequest = {
  method: string;
  path: string;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
};

/** JSON text: what the API returned, or an error of the form that the API gives to its own. */
export type ApiAnswer = { isError: boolean; text: string };

/** The slowest operation waits 10 s for upstream. */
const TIMEOUT_MS = 30_000;

/** The longest answer that is read; a page of events with large bodies has some MiB. */
const MAX_READ_CHARS = 32 * 1024 * 1024;

/** Calls the API as any client does. The key is in no answer, whatever the other side sends back. */
export async function callApi(
  { url, key }: ApiAccess,
  request: ApiRequest,
  signal: AbortSignal,
): Promise<ApiAnswer> {
  const limit = linkedAbort(signal, TIMEOUT_MS);
  const answer = await answerOf(url, key, request, limit.signal)
    .catch((error) =>
      limit.isLate()
        ? failure('gateway_timeout', `The gateway at ${url} did not answer within ${TIMEOUT_MS / 1_000} s.`)
        : failure('gateway_unreachable', `The gateway at ${url} cannot be reached: ${reasonOf(error)}.`),
    )
    .finally(() => limit.release());
  return { ...answer, text: answer.text.replaceAll(key, '[API key]') };
}

/** The API did not give it. */
export function failure(code: string, message: string, more: object = {}): ApiAnswer {
  return { isError: true, text: JSON.stringify({ error: { code, message, ...more } }) };
}

async function answerOf(
  url: string,
  key: string,
  { method, path, body, headers }: ApiRequest,
  signal: AbortSignal,
): Promise<ApiAnswer> {
  const response = await fetch(`${url}${path}`, {
    method,
    // The key belongs to this server, and not to where it points.
    redirect: 'manual',
    headers: {
      ...headers,
      authorization: `Bearer ${key}`,
      accept: 'application/json',
      'user-agent': 'heliograph-cli mcp',
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal,
  });
  const text = await readText(response);
  const isJson = /^application\/json\b/.test(response.headers.get('content-type') ?? '');
  if (text !== null && isJson) return response.ok ? { isError: false, text } : errorOf(text, response);
  if (text === null) return failure('answer_too_large', 'The answer is too large. Ask for less.');
  const { status } = response;
  return failure(
    'not_the_gateway',
    `${url} answers with status ${status} and without JSON: is the URL right?`,
  );
}

function errorOf(text: string, response: Response): ApiAnswer {
  const retryAfterMs = parseRetryAfter(response.headers.get('retry-after') ?? undefined, Date.now());
  const { error } = JSON.parse(text) as { error?: unknown };
  if (retryAfterMs === null || !isMembers(error)) return { isError: true, text };
  const retryAfterSeconds = Math.ceil(retryAfterMs / 1_000);
  return { isError: true, text: JSON.stringify({ error: { ...error, retryAfterSeconds } }) };
}

async function readText({ body }: Response): Promise<string | null> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_READ_CHARS) return null;
  }
  return text + decoder.decode();
}

function reasonOf(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}
