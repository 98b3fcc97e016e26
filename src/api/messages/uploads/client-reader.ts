import type { FastifyRequest } from 'fastify';
import type { ApiError } from '../../errors/api-error.ts';
import { mayTakeMs, tooSlow } from '../../shares/client-shares.ts';

export type Reader = <T>(read: () => Promise<T>) => Promise<T>;

/**
 * Waits for the client at the lowest rate; the time that the store takes is not the client's. Whatever a parser
 * throws, or the connection, says that the body is not whole: `broken`.
 */
export function makeReader(
  { raw: { socket } }: FastifyRequest,
  cut: Promise<never>,
  broken: (cause: unknown) => ApiError,
): Reader {
  // Requests of tests that come over no connection have not read anything.
  const received = () => socket.bytesRead ?? 0;
  const before = received();
  let waitedMs = 0;
  let stopRead: (error: unknown) => void = () => {};
  let cause: { error: unknown } | null = null;
  // Once for all reads: a race with a promise that lasts keeps what each read has brought, which is the whole file.
  cut.catch((error: unknown) => {
    cause = { error };
    stopRead(error);
  });
  return async (read) => {
    const stopped = Promise.withResolvers<never>();
    stopRead = stopped.reject;
    if (cause !== null) stopRead(cause.error);
    const work = read().catch((error: unknown) => {
      throw broken(error);
    });
    const beganAt = performance.now();
    const leftMs = mayTakeMs(received() - before) - waitedMs;
    const timer = setTimeout(() => stopped.reject(tooSlow()), Math.max(leftMs, 0));
    try {
      return await Promise.race([stopped.promise, work]);
    } finally {
      clearTimeout(timer);
      waitedMs += performance.now() - beganAt;
    }
  };
}
