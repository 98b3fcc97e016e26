import {
  type AddressGuard,
  judgeEndpointUrl,
  makeHostResolver,
  type ResolveHost,
} from '../../platform/http/outbound-url.ts';
import { runExchange, undispatched } from './http-exchange.ts';
import { makeOriginPools } from './origin-pools.ts';
import type { SendResult } from './send-result.ts';

export type HttpSenderOptions = {
  guard: AddressGuard;
  allowHttp: boolean;
  /** DNS, TCP and TLS of a new connection. */
  connectTimeoutMs: number;
  /** Everything from the call on, the response body included; a request may set its own. */
  totalTimeoutMs: number;
  maxOrigins?: number;
  originIdleMs?: number;
  connectionMaxAgeMs?: number;
  /** PEM certificates to trust in place of the well-known ones. */
  ca?: string;
  resolve?: ResolveHost;
};

type SendRequest = {
  url: string;
  headers: Record<string, string>;
  body: Uint8Array;
  timeoutMs?: number;
  signal?: AbortSignal;
};

export type HttpSender = {
  /** POSTs once. Never rejects: trouble with the URL, the network or the receiver is a result too. */
  send(request: SendRequest): Promise<SendResult>;
  /** Refuses new requests, waits for those in flight and closes all connections. */
  close(): Promise<void>;
};

/**
 * The sender of webhooks: keep-alive per origin, HTTP/1.1, redirects are responses like any other, every address
 * checked before it is connected to, one deadline for everything. It does not retry: a connection that the receiver
 * closed while it was idle is reported as `reset`, for only the retry schedule may send an event twice. No request waits
 * for another one: how many are under way is for the callers to limit.
 */
export function makeHttpSender(options: HttpSenderOptions): HttpSender {
  const { guard, allowHttp, connectTimeoutMs, totalTimeoutMs } = options;
  const pools = makeOriginPools({
    guard,
    connectTimeoutMs,
    resolve: shareLookups(options.resolve ?? makeHostResolver()),
    ca: options.ca,
    maxOrigins: options.maxOrigins ?? 512,
    originIdleMs: options.originIdleMs ?? 60_000,
    connectionMaxAgeMs: options.connectionMaxAgeMs ?? 300_000,
  });
  let closed = false;
  return {
    async send({ url, headers, body, timeoutMs = totalTimeoutMs, signal }) {
      const startMs = performance.now();
      if (closed)
        return undispatched({ errorClass: 'aborted', message: 'The sender is shutting down.' }, startMs);
      if (signal?.aborted)
        return undispatched({ errorClass: 'aborted', message: 'The request was cancelled.' }, startMs);
      const verdict = judgeEndpointUrl(url, { allowHttp, guard });
      if (!verdict.ok) {
        const errorClass = verdict.code === 'address_not_allowed' ? 'blocked_address' : 'invalid_url';
        return undispatched({ errorClass, message: verdict.message }, startMs);
      }
      return runExchange(pools, { url: new URL(verdict.url), headers, body, timeoutMs, signal });
    },
    async close() {
      closed = true;
      await pools.close();
    },
  };
}

/** Lets connections that open at the same moment share one lookup; nothing is remembered beyond it. */
function shareLookups(resolve: ResolveHost): ResolveHost {
  const running = new Map<string, Promise<string[]>>();
  return (hostname) => {
    const shared = running.get(hostname);
    if (shared !== undefined) return shared;
    const lookup = resolve(hostname).finally(() => running.delete(hostname));
    running.set(hostname, lookup);
    return lookup;
  };
}
