import { expect, test } from 'vitest';
import type { AttemptOutcome } from '../../../src/engine/deliveries/judge-outcome.ts';
import { newsOf, waitOf } from '../../../src/engine/deliveries/run-news.ts';

const ended = (state: 'delivered' | 'failed' | 'dropped'): AttemptOutcome => ({
  state: 'settled',
  end: { state, attempts: 2, statusCode: null, error: 'a reason' },
});

const waits = { reason: 'the endpoint returned 503', attempt: 2, delayMs: 1_000, run: null };

test.each<[AttemptOutcome, string | null]>([
  [{ state: 'delivered', statusCode: 204, attempt: 1 }, 'delivered'],
  [{ state: 'failed', reason: 'it refused', attempt: 3 }, 'failed'],
  [{ state: 'retrying', isExtra: false, ...waits }, null],
  [{ state: 'deferred', ...waits }, null],
  [{ state: 'waiting', ...waits }, null],
  [ended('delivered'), 'delivered'],
  [ended('failed'), 'failed'],
  [ended('dropped'), 'dropped'],
  // Erased with its log.
  [{ state: 'settled', end: null }, 'dropped'],
])('only a delivered event is shown as delivered: %o', (outcome, end) => {
  const news = newsOf(outcome);
  expect(news.end).toBe(end);
  expect(/^Delivered/.test(news.summary)).toBe(end === 'delivered');
});

test('runs of an endpoint that is probed look once a minute at most: their end is reported to them', () => {
  const waiting = { steppedAsideAt: null, lastError: null, waitMs: null, probeMs: 1_000 };
  expect(waitOf({ ...waiting, state: 'due', mode: 'probing' })).toMatchObject({ delayMs: 65_000 });
});
