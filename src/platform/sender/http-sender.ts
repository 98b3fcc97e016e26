import type { Dispatcher } from 'undici';
import { makeHostResolver, type ResolveHost } from '../http/host-resolver.ts';
import { judgeEndpointUrl } from '../http/outbound-url.ts';
import { parseRetryAfter } from '../http/retry-after.ts';
import type { ConnectionTerms } from './connection-terms.ts';
import { type ConnectionPhases, elapsedMs } from './guarded-connector.ts';
import { type ConnectionAware, makeOriginPools, type OriginPools, type PoolRules } from './origin-pools.ts';
import type { PhaseTimings } from './phase-timings.ts';
import { LOOK_WITHIN_MS, type ProxyRoute } from './proxy-route.ts';
import { classifySendError, type SendErrorClass, type SendFailure } from './send-error.ts';

export type HttpSenderOptions = Omit<PoolRules, 'resolve' | keyof typeof POOL_LIMITS> &
  Partial<Pick<PoolRules, 'resolve' | keyof typeof POOL_LIMITS>> & {
    allowHttp: boolean;
    /** Everything from the call on, the response body included; a request may set its own. */
    totalTimeoutMs: number;
  };

const POOL_LIMITS = { maxOrigins: 512, originIdleMs: 60_000, connectionMaxAgeMs: 300_000 };

type SendRequest = ConnectionTerms & {
  url: string;
  /** POST unless it is named. */
  method?: 'GET' | 'POST';
  headers: Record<string, string>;
  body: Uint8Array | null;
  timeoutMs?: number;
};

export type HttpSender = {
  /** Sends once. Never rejects: trouble with the URL, the network or the receiver is a result too. */
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
  const { guard, allowHttp, totalTimeoutMs } = options;
  const resolve = shareLookups(options.resolve ?? makeHostResolver());
  const pools = makeOriginPools({ ...POOL_LIMITS, ...options, resolve });
  let closed = false;
  return {
    async send({ url, method = 'POST', headers, body, timeoutMs = totalTimeoutMs, ...terms }) {
      const startMs = performance.now();
      if (closed)
        return undispatched({ errorClass: 'aborted', message: 'The sender is shutting down.' }, startMs);
      const verdict = judgeEndpointUrl(url, { allowHttp, guard, ...terms });
      if (!verdict.ok) {
        const errorClass = verdict.code === 'address_not_allowed' ? 'blocked_address' : 'invalid_url';
        return undispatched({ errorClass, message: verdict.message }, startMs);
      }
      const exchange = { url: new URL(verdict.url), method, headers, body, timeoutMs, terms };
      return runExchange(pools, options.route, exchange);
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

const MAX_READ_BYTES = 64 * 1024;
const MAX_KEPT_BYTES = 4 * 1024;

type ExchangeRequest = {
  url: URL;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body: Uint8Array | null;
  /** Over everything: waiting for a connection, DNS, TCP, TLS, response and its body. */
  timeoutMs: number;
  terms: ConnectionTerms;
};

/** One request on its way. Settled at most once; what undici reports after that is ignored. */
type Exchange = ReturnType<typeof newExchange>;

/** Sends once on a pooled connection and always resolves, at the latest when the time is up. */
function runExchange(
  pools: OriginPools,
  route: ProxyRoute | undefined,
  request: ExchangeRequest,
): Promise<SendResult> {
  const { url, method, headers, body, timeoutMs, terms } = request;
  const { promise, resolve } = Promise.withResolvers<SendResult>();
  const exchange = newExchange(resolve, route);
  const lease = pools.acquire(url.origin, terms);
  const timer = setTimeout(() => cancelLate(exchange), timeoutMs);
  const doubt = route && setTimeout(() => void route.look(), doubtAfterMs(timeoutMs));
  exchange.stop = () => {
    clearTimeout(timer);
    clearTimeout(doubt);
    lease.release();
  };
  const path = `${url.pathname}${url.search}`;
  lease.dispatch({ origin: url.origin, path, method, headers, body }, exchangeHandler(exchange));
  return promise;
}

/** The look whether the proxy is why nothing comes is over when the time is. */
function doubtAfterMs(timeoutMs: number): number {
  return Math.max(Math.ceil(timeoutMs / 5), timeoutMs - 2 * LOOK_WITHIN_MS);
}

function undispatched(failure: SendFailure, startMs: number): SendResult {
  const timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, reused: false };
  return {
    outcome: 'error',
    ...failure,
    timings: { ...timings, totalMs: elapsedMs(startMs) },
    remoteAddress: null,
  };
}

function newExchange(resolve: (result: SendResult) => void, route: ProxyRoute | undefined) {
  return {
    route,
    startMs: performance.now(),
    resolve: resolve as typeof resolve | null,
    stop: (): void => undefined,
    controller: null as Dispatcher.DispatchController | null,
    connection: null as { phases: ConnectionPhases } | null,
    /** Set when the request is written; from then on it is this connection's. */
    phases: null as ConnectionPhases | null,
    reused: false,
    writtenMs: null as number | null,
    firstByteMs: null as number | null,
    statusCode: null as number | null,
    headers: {} as Record<string, string>,
    kept: [] as Buffer[],
    receivedBytes: 0,
  };
}

function exchangeHandler(exchange: Exchange): ConnectionAware {
  return {
    onConnectionAssigned(connection) {
      exchange.connection = connection;
    },
    onRequestStart(controller) {
      // The time may have run out while the request waited for a connection; then nothing is written.
      if (exchange.resolve === null) {
        controller.abort(new Error('settled'));
        return;
      }
      exchange.controller = controller;
      exchange.writtenMs = performance.now();
      exchange.phases = exchange.connection?.phases ?? null;
      if (exchange.phases === null) return;
      exchange.reused = exchange.phases.requests > 0;
      exchange.phases.requests += 1;
    },
    onResponseStarted() {
      exchange.firstByteMs ??= elapsedMs(exchange.writtenMs ?? exchange.startMs);
    },
    onResponseStart(_controller, statusCode, headers) {
      if (statusCode < 200) return;
      exchange.statusCode = statusCode;
      exchange.headers = flatHeaders(headers);
    },
    onResponseData(controller, chunk) {
      keep(exchange, chunk);
      if (exchange.receivedBytes <= MAX_READ_BYTES) return;
      respond(exchange);
      controller.abort(new Error('enough was read'));
    },
    onResponseEnd() {
      respond(exchange);
    },
    onResponseError(_controller, error) {
      const reusedUnanswered = exchange.reused && exchange.firstByteMs === null;
      void blame(exchange, classifySendError(error, { reusedUnanswered }));
    },
  };
}

/** Copies what is kept, because undici's chunks are views of larger buffers. */
function keep(exchange: Exchange, chunk: Buffer): void {
  const room = MAX_KEPT_BYTES - exchange.receivedBytes;
  if (room > 0) exchange.kept.push(Buffer.from(chunk.subarray(0, room)));
  exchange.receivedBytes += chunk.length;
}

function respond(exchange: Exchange): void {
  const { statusCode, headers, kept } = exchange;
  if (statusCode === null) {
    fail(exchange, { errorClass: 'protocol', message: 'The response had no status.' });
    return;
  }
  settle(exchange, {
    outcome: 'response',
    statusCode,
    headers,
    body: Buffer.concat(kept),
    retryAfterMs: parseRetryAfter(headers['retry-after'], Date.now()),
    ...measured(exchange),
  });
}

function fail(exchange: Exchange, failure: SendFailure): void {
  settle(exchange, { outcome: 'error', ...failure, ...measured(exchange) });
}

/** A connection ends with the proxy that carries it, which is no fault of the receiver. */
const MAY_BE_THE_PROXY = new Set<SendErrorClass>(['reset', 'closed', 'timeout', 'tls', 'other']);

async function blame(exchange: Exchange, failure: SendFailure): Promise<void> {
  const { route } = exchange;
  if (route === undefined) return fail(exchange, failure);
  if (failure.errorClass === 'proxy') void route.look();
  else if (MAY_BE_THE_PROXY.has(failure.errorClass)) await route.look();
  failUnlessProxy(exchange, failure);
}

function failUnlessProxy(exchange: Exchange, failure: SendFailure): void {
  const trouble = MAY_BE_THE_PROXY.has(failure.errorClass) ? exchange.route?.trouble() : null;
  fail(exchange, trouble ? { errorClass: 'proxy', message: trouble } : failure);
}

/** Ends the request from our side: the result is given at once, the connection is destroyed if it was in use. */
function cancelLate(exchange: Exchange): void {
  const message = timeoutText(exchange);
  failUnlessProxy(exchange, { errorClass: 'timeout', message });
  exchange.controller?.abort(new Error(message));
}

function settle(exchange: Exchange, result: SendResult): void {
  const { resolve } = exchange;
  if (resolve === null) return;
  exchange.resolve = null;
  exchange.stop();
  resolve(result);
}

function timeoutText({ writtenMs, firstByteMs }: Exchange): string {
  if (writtenMs === null) return 'The connection was not made in time.';
  if (firstByteMs === null) return 'The receiver did not respond in time.';
  return 'The response was not complete in time.';
}

function measured(exchange: Exchange): { timings: PhaseTimings; remoteAddress: string | null } {
  const { reused, firstByteMs, startMs } = exchange;
  const phases = exchange.phases ?? unusedPhases(exchange.connection);
  const own = reused ? null : phases;
  return {
    timings: {
      dnsMs: own?.dnsMs ?? null,
      connectMs: own?.connectMs ?? null,
      tlsMs: own?.tlsMs ?? null,
      firstByteMs,
      totalMs: elapsedMs(startMs),
      reused,
    },
    remoteAddress: phases?.remoteAddress ?? null,
  };
}

/** A connection that failed or is being made for this request; one that served others says nothing about it. */
function unusedPhases(connection: Exchange['connection']): ConnectionPhases | null {
  return connection !== null && connection.phases.requests === 0 ? connection.phases : null;
}

function flatHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  );
}

/** What came of one webhook request. Any complete response is a `response`, whatever its status says. */
export type SendResult =
  | {
      outcome: 'response';
      statusCode: number;
      /** Names in lower case; several values of one name are joined with a comma. At most 16 KiB in all. */
      headers: Record<string, string>;
      /** The first 4 KiB. */
      body: Buffer;
      retryAfterMs: number | null;
      timings: PhaseTimings;
      /** The address that was connected to: for operators, not for tenants. */
      remoteAddress: string | null;
    }
  | {
      outcome: 'error';
      errorClass: SendErrorClass;
      /** One sentence without addresses or secrets, fit for tenants. */
      message: string;
      timings: PhaseTimings;
      remoteAddress: string | null;
    };

/** Whether our own egress proxy failed: nothing is known of the receiver, and no endpoint is to blame. */
export function isProxyFailure(result: SendResult): boolean {
  return result.outcome === 'error' && result.errorClass === 'proxy';
}

export function isTimeout(result: SendResult): boolean {
  return result.outcome === 'error' && result.errorClass === 'timeout';
}
