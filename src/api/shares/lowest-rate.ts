import { ApiError } from '../errors/api-error.ts';

/**
 * A body that has not ended after this time must have come at this rate on average. The upstream platform itself gives
 * up after 5 seconds.
 */
const GRACE_MS = 5_000;
const MIN_BYTES_PER_SECOND = 32 * 1024;

/** How long what has come of a body may have taken. */
export function mayTakeMs(sizeBytes: number): number {
  return Math.max(GRACE_MS, (sizeBytes * 1_000) / MIN_BYTES_PER_SECOND);
}

/** A body came slower than that. */
export function tooSlow(): ApiError {
  return new ApiError('request_timeout', { message: 'The body came too slowly.' });
}
