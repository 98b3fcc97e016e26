import { linkedAbort } from '../../../src/platform/http/linked-abort.ts';
import type { ApiClient } from './api-client.ts';
import { refused, unreachable } from './api-client.ts';
import { clockAheadMs } from './clock.ts';
import { type Block, makeBlockReader, readEvent, type StreamedEvent } from './event-block.ts';
import { EXIT, Failure, isLasting, networkProblem } from './failure.ts';

export type StreamOptions = {
  api: ApiClient;
  types: string | undefined;
  /** From where to go on; null: from now. */
  cursor: string | null;
  signal: AbortSignal;
  /** Called for each event, one after the other; the stream is read on when it has resolved. */
  onEvent(event: StreamedEvent, cursor: string): void | Promise<void>;
  /** Called with the cursor where no event came with it. */
  onCursor(cursor: string): void;
  /** `aheadMs`: by how much the clock of this machine is ahead of that of the service. */
  onOpen(isAgain: boolean, aheadMs: number): void;
  /** The stream is away; it is opened again after `waitMs`. */
  onCut(problem: string, waitMs: number): void;
};

/** A heartbeat comes every 15 seconds. */
const SILENCE_MS = 40_000;
const SILENT = 'nothing came for 40 seconds';
const MAX_WAIT_MS = 30_000;

/** Why the service ends a stream for good. */
const FINAL: Readonly<Record<string, string>> = {
  key_revoked: 'The API key was revoked. Run "heliograph login" with another one.',
  key_expired: 'The API key has expired. Run "heliograph login" with another one.',
  ip_not_allowed: 'The API key may no longer be used from this address.',
};

const REASONS: Readonly<Record<string, string>> = {
  server_stopping: 'the server is being restarted',
  service_unavailable: 'the service has a problem',
  max_age: 'the stream has lasted an hour',
};

/**
 * Reads live events until `signal` is aborted, and opens the stream again whenever it is cut, from the last event on.
 * Throws Failure when the key is no longer valid or the service refuses the request.
 */
export async function readStream(options: StreamOptions): Promise<void> {
  const position = { cursor: options.cursor, retryMs: 1_000, isFirst: true };
  let failures = 0;
  for (let isAgain = false; !options.signal.aborted; ) {
    const opened = await attempt(options, position, (aheadMs) => {
      options.onOpen(isAgain, aheadMs);
      isAgain = true;
      position.isFirst = false;
      failures = 0;
    });
    if (options.signal.aborted) return;
    failures += 1;
    // Clients that were cut together do not come back together.
    const backOffMs = position.retryMs * 2 ** (failures - 1) * (0.75 + Math.random() / 2);
    const waitMs = Math.max(opened.waitMs, Math.min(MAX_WAIT_MS, backOffMs));
    options.onCut(opened.problem, waitMs);
    await pause(waitMs, options.signal);
  }
}

/** `isFirst`: the stream was never open, so that a wrong URL is more likely than a network that is away. */
type Position = { cursor: string | null; retryMs: number; isFirst: boolean };

async function attempt(
  { api, types, signal, ...options }: StreamOptions,
  position: Position,
  onOpen: (aheadMs: number) => void,
): Promise<{ problem: string; waitMs: number }> {
  const abort = linkedAbort(signal, SILENCE_MS);
  try {
    const headers = position.cursor === null ? {} : { 'last-event-id': position.cursor };
    const response = await api.open(
      '/api/external/events/stream',
      { query: { types }, headers },
      abort.signal,
    );
    if (response.status !== 200 || response.body === null) return await notOpened(api, response);
    const type = response.headers.get('content-type') ?? '';
    if (!type.startsWith('text/event-stream')) throw refused(response.status, '', api.account);
    onOpen(clockAheadMs(response));
    const read = makeBlockReader();
    for await (const piece of piecesOf(response.body, abort.signal)) {
      for (const block of read(piece)) {
        if (block.event === 'end') return ended(block, position);
        await take(block, position, options);
        // The reader may have waited long for the receiver.
        abort.refresh();
      }
    }
    return { problem: abort.isLate() ? SILENT : 'the connection was closed', waitMs: 0 };
  } catch (error) {
    if (error instanceof Failure) throw error;
    if (position.isFirst && isLasting(error)) throw unreachable(api.account)(error);
    return { problem: abort.isLate() ? SILENT : networkProblem(error), waitMs: 0 };
  } finally {
    abort.release();
  }
}

/** The text of a body until it ends or the signal is aborted, which does not always reach the body of a response. */
async function* piecesOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const cancel = (): void => void reader.cancel().catch(() => {});
  signal.addEventListener('abort', cancel);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    signal.removeEventListener('abort', cancel);
    cancel();
  }
}

async function take(
  { id, retry, data }: Block,
  position: Position,
  { onEvent, onCursor }: Pick<StreamOptions, 'onEvent' | 'onCursor'>,
): Promise<void> {
  if (retry !== null && Number(retry) > 0) position.retryMs = Number(retry);
  if (data !== null && id !== null) await onEvent(readEvent(data), id);
  else if (id !== null) onCursor(id);
  position.cursor = id ?? position.cursor;
}

function ended({ data, retry }: Block, position: Position): { problem: string; waitMs: number } {
  const { reason } = JSON.parse(data ?? '{}') as { reason?: string };
  const final = FINAL[reason ?? ''];
  if (final !== undefined) throw new Failure(EXIT.key, final);
  if (retry !== null) position.retryMs = Number(retry);
  return { problem: REASONS[reason ?? ''] ?? 'the service ended the stream', waitMs: 0 };
}

/** What a server that is being restarted, or a proxy before it, may respond with. */
const PASSING = new Set([408, 429, 500, 502, 503, 504]);

async function notOpened(api: ApiClient, response: Response): Promise<{ problem: string; waitMs: number }> {
  const text = await response.text();
  if (!PASSING.has(response.status)) throw refused(response.status, text, api.account);
  const waitMs = Number(response.headers.get('retry-after') ?? 0) * 1_000;
  return {
    problem: refused(response.status, text, api.account).message,
    waitMs: Number.isFinite(waitMs) ? waitMs : 0,
  };
}

function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, waitMs);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
