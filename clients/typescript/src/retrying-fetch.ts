import {
  HeliographConnectionError,
  HeliographTimeoutError,
  retryAfterSecondsOf,
} from './heliograph-error.js';
import { readPastContinue } from './past-continue.js';

/** How requests are repeated, and how long they may take. */
export type RetryOptions = {
  /** How often a request is repeated at most; 0: never. */
  retries: number;
  /** How long the service may be silent, in milliseconds: before its answer, and within it; 0: for ever. */
  timeoutMs: number;
  /** A longer `Retry-After` than this, in milliseconds, is not waited for: the error is thrown. */
  maxWaitMs: number;
};

/** Answers after which the same request can succeed; 409 is only repeated where `Retry-After` says so. */
const TEMPORARY = new Set([408, 429, 500, 502, 503, 504]);
const FIRST_WAIT_MS = 500;
const LONGEST_BACK_OFF_MS = 8_000;
/** The service takes a form for a minute, before it answers. */
const UPLOAD_TIMEOUT_MS = 90_000;
const SEND_PATH = /\/api\/external\/messages$/;
const SEARCH_PATH = /\/api\/external\/conversations\/search$/;

/**
 * A `fetch` that gives sends an `Idempotency-Key`, ends requests to which nothing answers, and repeats those that are
 * harmless to repeat: reads, and sends with their key.
 */
export function retryingFetch(send: typeof fetch, options: RetryOptions): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    readPastContinue(new URL(request.url).origin);
    if (isSend(request) && !request.headers.has('idempotency-key')) {
      request.headers.set('idempotency-key', newKey());
    }
    const retries = isRepeatable(request) ? options.retries : 0;
    for (let attempt = 0; ; attempt += 1) {
      const isLast = attempt >= retries;
      const outcome = await attempted(send, isLast ? request : request.clone(), options.timeoutMs);
      const waitMs = isLast ? null : waitBefore(attempt, outcome, options.maxWaitMs);
      if (waitMs !== null) {
        if (outcome instanceof Response) await outcome.body?.cancel();
        await pause(waitMs, request.signal);
      } else if (outcome instanceof Response) return outcome;
      else throw outcome;
    }
  };
}

function isSend(request: Request): boolean {
  return request.method === 'POST' && SEND_PATH.test(new URL(request.url).pathname);
}

function isRepeatable(request: Request): boolean {
  if (request.method === 'GET' || request.method === 'HEAD' || isSend(request)) return true;
  return request.method === 'POST' && SEARCH_PATH.test(new URL(request.url).pathname);
}

/** How long to wait before the next attempt; null when the outcome is final. */
function waitBefore(attempt: number, outcome: Response | Error, maxWaitMs: number): number | null {
  // Between half of the step and all of it, so that clients do not return together.
  const step = Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_BACK_OFF_MS);
  const backOffMs = step * (0.5 + Math.random() / 2);
  if (!(outcome instanceof Response)) {
    return outcome instanceof HeliographConnectionError ? backOffMs : null;
  }
  const retryAfter = retryAfterSecondsOf(outcome.headers);
  const isTemporary = TEMPORARY.has(outcome.status) || (outcome.status === 409 && retryAfter !== null);
  // The service repeats the first answer to an Idempotency-Key, whatever it was.
  if (!isTemporary || outcome.headers.has('idempotent-replayed')) return null;
  if (retryAfter === null) return backOffMs;
  return retryAfter * 1_000 > maxWaitMs ? null : Math.max(retryAfter * 1_000, backOffMs);
}

/** One attempt: its answer, or the error that the caller gets. */
async function attempted(send: typeof fetch, request: Request, timeoutMs: number): Promise<Response | Error> {
  const silence = watchSilence(request, timeoutMs);
  try {
    const response = await send(new Request(request, { signal: silence.signal }));
    // An answer that breaks off is none; what is read as a stream is the caller's to repeat.
    if (!isJson(response)) return withWatchedBody(response, silence);
    const { status, statusText, headers } = response;
    const text = await response.text();
    silence.end();
    return new Response(hasNoBody(status) ? null : text, { status, statusText, headers });
  } catch (error) {
    silence.end();
    if (request.signal.aborted) return abortReason(request.signal);
    if (silence.signal.aborted) return silence.signal.reason as HeliographTimeoutError;
    return new HeliographConnectionError(`no answer from ${new URL(request.url).origin}`, { cause: error });
  }
}

function isJson(response: Response): boolean {
  return (response.headers.get('content-type') ?? '').startsWith('application/json');
}

/** `Response` takes no body, not even an empty one, with these. */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

type Silence = { signal: AbortSignal; begin(): void; pause(): void; end(): void };

/** Aborts when the service is silent for too long, or when the caller aborts. */
function watchSilence(request: Request, timeoutMs: number): Silence {
  const controller = new AbortController();
  const follow = () => controller.abort(request.signal.reason);
  if (request.signal.aborted) follow();
  request.signal.addEventListener('abort', follow, { once: true });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const start = (ms: number) => {
    clearTimeout(timer);
    if (timeoutMs > 0) timer = setTimeout(() => controller.abort(tooLong(ms)), ms);
  };
  const isForm = (request.headers.get('content-type') ?? '').startsWith('multipart/form-data');
  start(isForm ? Math.max(timeoutMs, UPLOAD_TIMEOUT_MS) : timeoutMs);
  return {
    signal: controller.signal,
    begin: () => start(timeoutMs),
    pause: () => clearTimeout(timer),
    end: () => {
      clearTimeout(timer);
      request.signal.removeEventListener('abort', follow);
    },
  };
}

/** The same answer, whose body fails when nothing more of it comes. */
function withWatchedBody(response: Response, silence: Silence): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) {
    silence.end();
    return response;
  }
  // The time counts while somebody waits for the service, not while the reader is busy.
  silence.pause();
  const reader = body.getReader();
  const watched = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          silence.begin();
          const { done, value } = await reader.read();
          silence.pause();
          if (!done) return controller.enqueue(value);
          silence.end();
          controller.close();
        } catch (error) {
          silence.end();
          const brokeOff = () => new HeliographConnectionError('the answer broke off', { cause: error });
          controller.error(silence.signal.aborted ? silence.signal.reason : brokeOff());
        }
      },
      async cancel(reason) {
        silence.end();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(watched, { status, statusText, headers });
}

function tooLong(ms: number): HeliographTimeoutError {
  return new HeliographTimeoutError(`the service was silent for ${ms} ms`);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(abortReason(signal));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

function abortReason(signal: AbortSignal): Error {
  const { reason } = signal;
  return reason instanceof Error ? reason : new DOMException('The request was aborted.', 'AbortError');
}

function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
