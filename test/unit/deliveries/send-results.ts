import type { SendResult } from '../../../src/platform/sender/http-sender.ts';
import type { SendErrorClass } from '../../../src/platform/sender/send-error.ts';

const PHASES = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, reused: true };

/** A complete response with this status. */
export function response(
  statusCode: number,
  { totalMs = 5, retryAfterMs = null }: { totalMs?: number; retryAfterMs?: number | null } = {},
): SendResult {
  return {
    outcome: 'response',
    statusCode,
    headers: {},
    body: Buffer.alloc(0),
    retryAfterMs,
    timings: { ...PHASES, totalMs },
    remoteAddress: null,
  };
}

/** An attempt without a response. */
export function failure(errorClass: SendErrorClass): SendResult {
  const message = 'The receiver was not there.';
  return { outcome: 'error', errorClass, message, timings: { ...PHASES, totalMs: 5 }, remoteAddress: null };
}
