import { MediaHostRefused } from '../../../platform/graph/graph-connection.ts';
import { GraphError, isObjectGone, isTokenError } from '../../../platform/graph/graph-error.ts';
import { ObjectStoreUnavailable } from '../../../platform/object-store/store-errors.ts';
import { isTransientError } from '../../../platform/postgres/error-class.ts';
import { retryDelayMs } from '../../../platform/temporal/activity-kit.ts';
import { AccessTokenProblem } from '../../accounts/access-tokens.ts';
import { StorageQuotaExceeded } from './media.ts';

/** Upstream keeps inbound media for 7 days. */
const UPSTREAM_RETENTION_MS = 7 * 24 * 60 * 60 * 1_000;

/** The growing waits spare upstream; our own store and database are not looked for too often, and customers wait for them. */
const LONGEST_WAIT_FOR_OURS_MS = 2 * 60 * 1_000;

/** The same answer is believed when it has come this often. */
const MAX_WRONG_DOWNLOADS = 3;
const MAX_GONE_RESPONSES = 2;

/**
 * Kept in heartbeats. `goneResponses` counts only those at which other media could be read with the same token, because the same answer
 * means a missing permission.
 */
export type FetchTally = { wrongDownloads: number; goneResponses: number };

/** `reason` is for operators, `code` for the tenant. */
export type MediaVerdict = { kind: 'final'; code: MediaErrorCode; reason: string } | MediaRetry;

export type MediaRetry = {
  kind: 'retry';
  reason: string;
  retryAfterMs: number | null;
  unexpected: boolean;
  isOursAway: boolean;
};

/** `ageMs` is null when it could not be read. */
export function judgeFailure(error: unknown, tally: FetchTally, ageMs: number | null): MediaVerdict {
  const reason = error instanceof Error ? error.message : 'unknown failure';
  const code = finalCode(error, tally);
  if (code !== null) return { kind: 'final', code, reason };
  if (ageMs !== null && ageMs > UPSTREAM_RETENTION_MS)
    return { kind: 'final', code: codeWhenOver(error), reason };
  return {
    kind: 'retry',
    reason: adviceFor(error, reason),
    retryAfterMs: error instanceof GraphError ? error.retryAfterMs : null,
    unexpected: !isExpected(error),
    isOursAway: isOursAway(error),
  };
}

/** How long to wait after attempt number `attempt` (from 1), in ms. */
export function waitBeforeNext({ retryAfterMs, isOursAway }: MediaRetry, attempt: number): number {
  const delayMs = retryDelayMs(attempt, retryAfterMs);
  return isOursAway ? Math.min(delayMs, LONGEST_WAIT_FOR_OURS_MS) : delayMs;
}

function finalCode(error: unknown, { wrongDownloads, goneResponses }: FetchTally): MediaErrorCode | null {
  if (error instanceof MediaTooLarge) return 'media_too_large';
  if (error instanceof StorageQuotaExceeded) return 'storage_quota_exceeded';
  if (error instanceof WrongBytes && wrongDownloads >= MAX_WRONG_DOWNLOADS) return 'media_hash_mismatch';
  const isGone = error instanceof GraphError && isObjectGone(error);
  return isGone && goneResponses >= MAX_GONE_RESPONSES ? 'media_gone' : null;
}

function codeWhenOver(error: unknown): MediaErrorCode {
  if (isTokenProblem(error)) return 'access_token_invalid';
  if (error instanceof MediaHostRefused) return 'media_host_refused';
  return 'media_expired';
}

function adviceFor(error: unknown, reason: string): string {
  if (error instanceof GraphError && isTokenError(error)) {
    return `${reason} Give the WABA a valid access token with the admin command; the next attempt uses it.`;
  }
  if (error instanceof GraphError && isObjectGone(error)) {
    return `${reason} If other media fails like this, see that the access token has a permission for the WABA.`;
  }
  if (isTimeout(error)) return 'The attempt took too long and was cut off.';
  return isDatabaseAway(error) ? `The database is not available: ${reason}.` : reason;
}

function isOursAway(error: unknown): boolean {
  return error instanceof ObjectStoreUnavailable || isDatabaseAway(error);
}

function isDatabaseAway(error: unknown): boolean {
  return !isTyped(error) && isTransientError(error);
}

function isTokenProblem(error: unknown): boolean {
  return error instanceof AccessTokenProblem || (error instanceof GraphError && isTokenError(error));
}

function isExpected(error: unknown): boolean {
  return isTyped(error) || isTimeout(error) || isTransientError(error);
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError');
}

function isTyped(error: unknown): boolean {
  return (
    error instanceof GraphError ||
    error instanceof ObjectStoreUnavailable ||
    error instanceof WrongBytes ||
    error instanceof AccessTokenProblem ||
    error instanceof MediaHostRefused
  );
}

/** Tenants see it in `mediaError` when media is never going to be there. */
export type MediaErrorCode =
  | 'media_gone'
  | 'media_too_large'
  | 'media_hash_mismatch'
  | 'media_expired'
  | 'access_token_invalid'
  | 'media_host_refused'
  | 'media_cancelled'
  | 'storage_quota_exceeded'
  | 'media_lost';

export const MEDIA_ERROR_MESSAGES: Readonly<Record<MediaErrorCode, string>> = {
  media_gone: 'The upstream platform does not have this media any more.',
  media_too_large: 'The media is larger than this service stores.',
  media_hash_mismatch: 'The downloaded bytes differ from what the upstream platform announced.',
  media_expired: 'The media could not be fetched within the 7 days for which the upstream platform keeps it.',
  access_token_invalid:
    'The WABA had no valid upstream access token within the 7 days for which the upstream platform keeps media.',
  media_host_refused: 'The upstream platform offered the media at a host that this service does not trust.',
  media_cancelled: 'An operator gave up fetching this media.',
  storage_quota_exceeded: 'The stored files of the business had reached their quota.',
  media_lost: 'This service lost the stored file, and the upstream platform no longer has it.',
};

/** Asking again does not help. */
export class MediaTooLarge extends Error {
  constructor(sizeBytes: number, maxBytes: number) {
    super(`The media has ${sizeBytes} bytes or more; the limit is ${maxBytes}.`);
    this.name = 'MediaTooLarge';
  }
}

export class WrongBytes extends Error {
  constructor(difference: string) {
    super(`The downloaded bytes are wrong: ${difference}.`);
    this.name = 'WrongBytes';
  }
}
