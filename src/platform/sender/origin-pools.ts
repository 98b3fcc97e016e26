import { Client, type Dispatcher, Pool } from 'undici';
import { readPastContinue } from '../http/interim-responses.ts';
import type { ConnectionTerms } from './connection-terms.ts';
import {
  type ConnectionPhases,
  type ConnectRules,
  makeGuardedConnector,
  newConnectionPhases,
  type TlsSessionSlot,
} from './guarded-connector.ts';

const MAX_RESPONSE_HEADER_BYTES = 16 * 1024;

export type PoolRules = ConnectRules & {
  maxOrigins: number;
  /** A pool that was not used for this long is closed. */
  originIdleMs: number;
  /** A connection takes no new request after this, so that a changed DNS record is noticed on a busy endpoint too. */
  connectionMaxAgeMs: number;
};

/** Tells a request which connection it was given; called again when it moves to another one. */
export type ConnectionAware = Dispatcher.DispatchHandler & {
  onConnectionAssigned(connection: { phases: ConnectionPhases }): void;
};

export type OriginPools = {
  /** Sends requests through the pool of their origin and counts one until `release` is called. */
  acquire(
    origin: string,
    terms?: ConnectionTerms,
  ): {
    dispatch(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void;
    release(): void;
  };
  /** Waits for requests in flight, then closes every connection. */
  close(): Promise<void>;
};

type OriginPool = { pool: Pool; inFlight: number; lastUsedMs: number };

/**
 * One keep-alive pool per origin, least recently used first out. Pools with requests in flight are never evicted, so
 * their number can pass `maxOrigins` for as long as that many origins are busy at once.
 *
 * Tenants may share an origin, a serverless platform's for instance. So a pool has no limit: a request that
 * finds no idle connection gets a new one, and an endpoint that hangs keeps no other waiting. What limits connections
 * is what may be under way (the slots of sessions and activities, and the limit per endpoint); idle ones are closed.
 */
export function makeOriginPools(rules: PoolRules): OriginPools {
  readPastContinue();
  // A Map keeps insertion order: re-inserting on use makes it an LRU list.
  const pools = new Map<string, OriginPool>();
  return {
    acquire(origin, terms = {}) {
      const key = poolKey(origin, terms);
      const entry = pools.get(key) ?? {
        pool: makePool(origin, { ...rules, ...terms }),
        inFlight: 0,
        lastUsedMs: 0,
      };
      pools.delete(key);
      pools.set(key, entry);
      entry.inFlight += 1;
      entry.lastUsedMs = performance.now();
      evict(pools, rules);
      return {
        dispatch: (options, handler) => entry.pool.dispatch(options, handler),
        release: () => {
          entry.inFlight -= 1;
        },
      };
    },
    async close() {
      const closing = [...pools.values()].map(({ pool }) => pool.close());
      pools.clear();
      await Promise.all(closing);
    },
  };
}

function poolKey(origin: string, { targets, clientCertificate }: ConnectionTerms): string {
  if (targets === undefined && clientCertificate === undefined) return origin;
  return `${origin} ${JSON.stringify([targets, clientCertificate?.fingerprint])}`;
}

function evict(pools: Map<string, OriginPool>, rules: PoolRules): void {
  const idleSinceMs = performance.now() - rules.originIdleMs;
  for (const [origin, { pool, inFlight, lastUsedMs }] of pools) {
    if (pools.size <= rules.maxOrigins && lastUsedMs > idleSinceMs) return;
    if (inFlight > 0) continue;
    pools.delete(origin);
    void pool.close();
  }
}

function makePool(origin: string, rules: PoolRules): Pool {
  const tlsSession: TlsSessionSlot = { session: undefined };
  return new Pool(origin, {
    connections: null,
    clientTtl: rules.connectionMaxAgeMs,
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
    // The sender has one deadline over everything; undici's timers would restart with every byte.
    headersTimeout: 0,
    bodyTimeout: 0,
    // Shorter than what receivers commonly keep, so that it is us who close an idle connection.
    keepAliveTimeout: 4_000,
    keepAliveTimeoutThreshold: 1_000,
    keepAliveMaxTimeout: 30_000,
    factory: (url, options) => makeClient(url, options, rules, tlsSession),
  });
}

/** A client is one connection at a time; it tells each request which one, which undici itself does not. */
function makeClient(url: URL, options: object, rules: PoolRules, tlsSession: TlsSessionSlot): Client {
  const connection = { phases: newConnectionPhases() };
  const connect = makeGuardedConnector(rules, tlsSession, () => {
    connection.phases = newConnectionPhases();
    return connection.phases;
  });
  const client = new Client(url, { ...options, connect });
  const dispatch = client.dispatch.bind(client);
  client.dispatch = (dispatchOptions, handler) => {
    if (isConnectionAware(handler)) handler.onConnectionAssigned(connection);
    return dispatch(dispatchOptions, handler);
  };
  return client;
}

function isConnectionAware(handler: Dispatcher.DispatchHandler): handler is ConnectionAware {
  return 'onConnectionAssigned' in handler;
}
