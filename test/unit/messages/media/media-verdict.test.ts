import { describe, expect, test } from 'vitest';
import { AccessTokenProblem } from '../../../../src/features/accounts/access-tokens.ts';
import {
  judgeFailure,
  MediaTooLarge,
  WrongBytes,
  waitBeforeNext,
} from '../../../../src/features/messages/media/media-verdict.ts';
import { MediaHostRefused } from '../../../../src/platform/graph/graph-connection.ts';
import { graphErrorOf, noAnswer } from '../../../../src/platform/graph/graph-error.ts';
import { ObjectStoreUnavailable } from '../../../../src/platform/object-store/store-errors.ts';
import { retryDelayMs } from '../../../../src/platform/temporal/activity-kit.ts';

const FRESH_MS = 1_000;
const OVER_MS = 7 * 24 * 60 * 60 * 1_000 + 1;
const NOTHING = { wrongDownloads: 0, goneResponses: 0 };
const graph = (status: number, error?: object, retryAfter?: string) =>
  graphErrorOf({ status, retryAfter, body: error === undefined ? null : { error } });

const PASSING = [
  ['no connection', noAnswer('ECONNRESET'), 'media_expired'],
  ['503', graph(503), 'media_expired'],
  ['429', graph(429), 'media_expired'],
  ['404 at a download address', graph(404), 'media_expired'],
  ['an ended token', graph(401, { code: 190, message: 'Session has expired' }), 'access_token_invalid'],
  ['no token', new AccessTokenProblem('WABA 1 has no token'), 'access_token_invalid'],
  ['what may be a missing permission', graph(400, { code: 100, error_subcode: 33 }), 'media_expired'],
  ['a missing permission', graph(403, { code: 200 }), 'media_expired'],
  ['the object store', new ObjectStoreUnavailable('ECONNREFUSED'), 'media_expired'],
  ['the database', Object.assign(new Error('gone'), { code: 'ECONNREFUSED' }), 'media_expired'],
  ['a host that is not listed', new MediaHostRefused('cdn.example', 'not listed'), 'media_host_refused'],
  ['the deadline', new DOMException('too long', 'TimeoutError'), 'media_expired'],
] as const;

describe('what a failed attempt leads to', () => {
  test.each(PASSING)('%s: tried again, quietly', (_name, error) => {
    expect(judgeFailure(error, NOTHING, FRESH_MS)).toMatchObject({ kind: 'retry', unexpected: false });
  });

  test.each(PASSING)('%s: given up after 7 days with a reason', (_name, error, code) => {
    expect(judgeFailure(error, NOTHING, OVER_MS)).toMatchObject({ kind: 'final', code });
  });

  test('wrong bytes are final at the third download only', () => {
    const error = new WrongBytes('x');
    expect(judgeFailure(error, { ...NOTHING, wrongDownloads: 2 }, FRESH_MS).kind).toBe('retry');
    expect(judgeFailure(error, { ...NOTHING, wrongDownloads: 3 }, FRESH_MS)).toMatchObject({
      code: 'media_hash_mismatch',
    });
  });

  test('a missing object is final when upstream says it again', () => {
    const error = graph(400, { code: 100, error_subcode: 33 });
    expect(judgeFailure(error, { ...NOTHING, goneResponses: 1 }, FRESH_MS)).toMatchObject({
      kind: 'retry',
      reason: expect.stringMatching(/access token has a permission/),
    });
    expect(judgeFailure(error, { ...NOTHING, goneResponses: 2 }, FRESH_MS)).toMatchObject({
      code: 'media_gone',
    });
  });

  test('too large is final at once', () => {
    expect(judgeFailure(new MediaTooLarge(11, 10), NOTHING, FRESH_MS)).toMatchObject({
      code: 'media_too_large',
    });
  });

  test('a defect of ours is tried again and reported', () => {
    expect(judgeFailure(new TypeError('x'), NOTHING, FRESH_MS)).toMatchObject({
      kind: 'retry',
      unexpected: true,
    });
  });

  test('an operator reads what to do about a token, and which part is away', () => {
    const token = judgeFailure(graph(401, { code: 190, message: 'Session has expired' }), NOTHING, FRESH_MS);
    expect(token.reason).toMatch(/Session has expired.*access token/);
    expect(judgeFailure(noAnswer('the connection failed'), NOTHING, FRESH_MS).reason).not.toMatch(/database/);
    const database = Object.assign(new Error('x'), { code: '57P01' });
    expect(judgeFailure(database, NOTHING, FRESH_MS).reason).toMatch(/database/);
  });
});

describe('the wait until the next attempt', () => {
  test('grows from a second to an hour and stays there', () => {
    const middle = () => 0.5;
    const waits = [1, 2, 3, 4, 5, 6, 7, 8, 9, 500].map(
      (attempt) => retryDelayMs(attempt, null, middle) / 1_000,
    );
    expect(waits).toEqual([1, 2, 5, 15, 60, 300, 900, 1_800, 3_600, 3_600]);
  });

  test('is as long as upstream asks for, but not over an hour', () => {
    expect(retryDelayMs(1, 30_000)).toBe(30_000);
    expect(retryDelayMs(1, 86_400_000)).toBe(3_600_000);
    expect(retryDelayMs(5, 1_000)).toBeGreaterThan(50_000);
  });

  test.each([
    ['the object store is away', new ObjectStoreUnavailable('ECONNREFUSED'), 120],
    ['the database is away', Object.assign(new Error('gone'), { code: 'ECONNREFUSED' }), 120],
    ['upstream fails', graph(503), 3_600],
    ['upstream cannot be reached', noAnswer('ECONNREFUSED'), 3_600],
  ])('%s: at most so many seconds', (_name, error, seconds) => {
    const verdict = judgeFailure(error, NOTHING, FRESH_MS);
    if (verdict.kind !== 'retry') throw new Error(`${verdict.kind} is not tried again`);
    const waits = [6, 7, 8, 9, 500].map((attempt) => waitBeforeNext(verdict, attempt));
    expect(Math.max(...waits)).toBeLessThanOrEqual(seconds * 1_000);
    expect(Math.max(...waits)).toBeGreaterThan(seconds * 850);
    expect(waitBeforeNext(verdict, 1)).toBeLessThan(2_000);
  });
});
