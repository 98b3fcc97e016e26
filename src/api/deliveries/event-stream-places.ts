import type { FastifyInstance } from 'fastify';
import { isInNetworks } from '../../platform/http/networks.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { ApiError, unavailable } from '../errors/api-error.ts';
import { createKeyLookup } from '../keys/api-key-auth.ts';

export type EndReason =
  | 'key_revoked'
  | 'key_expired'
  | 'ip_not_allowed'
  | 'server_stopping'
  | 'service_unavailable'
  | 'max_age';

type OpenStream = {
  keyId: string;
  tenantId: string;
  keyHash: Buffer;
  ip: string;
  /** The stream writes its last block; the first reason counts. */
  end(reason: EndReason): void;
  cut(): void;
  /** Since when the reader has left a block where it is, of `performance.now()`; null: it has read everything. */
  blockedSinceMs(): number | null;
};

export type StreamLimits = {
  perKey: number;
  perTenant: number;
  total: number;
  /** How often keys are looked up again and readers are judged, in ms. */
  checkEveryMs: number;
  maxBlockedMs: number;
};

/** A stream holds a connection, a timer and 256 KiB of bodies at most. */
export const STREAM_LIMITS: StreamLimits = {
  perKey: 5,
  perTenant: 20,
  total: 500,
  checkEveryMs: 2_000,
  maxBlockedMs: 30_000,
};

export type StreamPlaces = {
  /**
   * Takes a place until the function that it returns is called. Throws ApiError 429 when the key or its tenant has as
   * many streams as it may have, and 503 when the process has.
   */
  take(stream: OpenStream): () => void;
};

export function makeStreamPlaces(
  app: FastifyInstance,
  lookupDatabase: Database,
  limits: StreamLimits = STREAM_LIMITS,
): StreamPlaces {
  const streams = new Set<OpenStream>();
  const findKey = createKeyLookup(lookupDatabase);
  const countOf = (kind: 'keyId' | 'tenantId', value: string) =>
    [...streams].filter((stream) => stream[kind] === value).length;

  const checkKey = async (stream: OpenStream): Promise<void> => {
    const key = await findKey(stream.keyHash);
    if (key === null || key.isRevoked) return stream.end('key_revoked');
    if (key.isExpired) return stream.end('key_expired');
    const { allowedNetworks } = key;
    if (allowedNetworks !== null && !isInNetworks(stream.ip, allowedNetworks)) stream.end('ip_not_allowed');
  };
  const check = (): void => {
    const now = performance.now();
    for (const stream of streams) {
      if (now - (stream.blockedSinceMs() ?? now) > limits.maxBlockedMs) stream.cut();
      // While keys cannot be looked up, no event can be read either.
      else checkKey(stream).catch((error: unknown) => app.log.debug({ err: error }, 'a key was not checked'));
    }
  };
  const timer = setInterval(check, limits.checkEveryMs).unref();
  app.addHook('preClose', async () => {
    clearInterval(timer);
    for (const stream of streams) stream.end('server_stopping');
  });

  return {
    take(stream) {
      const isFull =
        countOf('keyId', stream.keyId) >= limits.perKey ||
        countOf('tenantId', stream.tenantId) >= limits.perTenant;
      if (isFull) throw new ApiError('too_many_streams', { headers: { 'retry-after': '10' } });
      if (streams.size >= limits.total) throw unavailable(new Error('all places for streams are taken'));
      streams.add(stream);
      return () => streams.delete(stream);
    },
  };
}
