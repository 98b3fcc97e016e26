import { expect, test } from 'vitest';
import { makeCatchUp } from '../../../clients/cli/src/catch-up.ts';
import { clockAheadMs, clockNote } from '../../../clients/cli/src/clock.ts';

const HOUR_MS = 3_600_000;

test('events of the past are counted every five seconds, and their end is told once', () => {
  const notes: string[] = [];
  let now = Date.parse('2026-11-26T12:00:00Z');
  const catchUp = makeCatchUp({ note: (text) => void notes.push(text) }, () => now);
  const ago = (ms: number) => new Date(now - ms).toISOString();
  for (let n = 0; n < 10_000; n += 1) {
    now += 1;
    catchUp.forwarded(ago(3 * HOUR_MS - n * 1_000));
  }
  expect(notes).toEqual(['Catching up: 5,001 earlier events were forwarded, 97 min to go.']);
  catchUp.forwarded(ago(2_000));
  catchUp.forwarded(ago(2_000));
  catchUp.end();
  expect(notes.slice(1)).toEqual(['Caught up: 10,000 earlier events were forwarded.']);
});

test('a clock that is off by an hour is named with its direction, one that is right is not', () => {
  const now = Date.parse('2026-11-26T12:00:00Z');
  const from = (date: string) => clockAheadMs(new Response(null, { headers: { date } }), now);
  expect(clockNote(from('Thu, 26 Nov 2026 11:00:00 GMT'))).toContain(
    '60 minutes ahead of that of the service',
  );
  expect(clockNote(from('Thu, 26 Nov 2026 13:00:00 GMT'))).toContain('60 minutes behind that of the service');
  expect(clockNote(from('Thu, 26 Nov 2026 12:00:20 GMT'))).toBeNull();
  expect(clockNote(clockAheadMs(new Response(null), now))).toBeNull();
});
