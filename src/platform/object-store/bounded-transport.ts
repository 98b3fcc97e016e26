import type { ClientRequest, IncomingMessage } from 'node:http';
import http from 'node:http';
import https from 'node:https';

type Transport = Pick<typeof http, 'request'>;

/** Statuses at which the client library gives up without reading the body. */
const UNREAD_STATUSES = new Set([408, 429, 499, 500, 502, 503, 504, 520]);

/**
 * An http transport that never hangs: a connection that carries nothing for `answerTimeoutMs` before the response is
 * destroyed, and so is a response whose body stalls for `stallTimeoutMs` while its reader waits for more.
 */
export function boundedTransport(timeouts: { answerTimeoutMs: number; stallTimeoutMs: number }): Transport {
  const request = (options: http.RequestOptions, onResponse?: (response: IncomingMessage) => void) => {
    const { request: start } = options.protocol === 'https:' ? https : http;
    const outgoing: ClientRequest = start(options, (response) => {
      outgoing.setTimeout(0);
      if (UNREAD_STATUSES.has(response.statusCode ?? 0)) response.resume();
      endWhenStalled(response, timeouts.stallTimeoutMs);
      onResponse?.(response);
    });
    outgoing.setTimeout(timeouts.answerTimeoutMs, () => {
      outgoing.destroy(new Error(`no answer within ${timeouts.answerTimeoutMs} ms`));
    });
    return outgoing;
  };
  return { request: request as Transport['request'] };
}

/** A socket timeout would also cut a body that our own slow reader holds back; this looks at who is waiting. */
function endWhenStalled(response: IncomingMessage, stallTimeoutMs: number): void {
  let seenBytes = -1;
  const timer = setInterval(() => {
    const bytesRead = response.socket?.bytesRead ?? seenBytes;
    const readerWaits = response.readableLength === 0;
    if (readerWaits && bytesRead === seenBytes) {
      response.destroy(new Error(`the answer stalled for ${stallTimeoutMs} ms`));
    }
    seenBytes = bytesRead;
  }, stallTimeoutMs);
  timer.unref();
  response.once('close', () => clearInterval(timer));
}
