import { expect, test } from 'vitest';
import { HELD_BACK_PACE, numberPace } from '../../../../src/features/messages/send/send-pacing.ts';

const PACES = [0.1, 1, 10, 39, 40, 79, 80, 81, 250, 1_000];

test.each(PACES)('of a number at %d per second no more leaves in any second', (perSecond) => {
  const { intervalMs, burst } = numberPace(perSecond);
  // The last of a burst is at 0: the others of the second follow one by one.
  const within = 1_000 / intervalMs + burst - 1;
  expect(within).toBeCloseTo(perSecond, 6);
});

test.each(PACES)('what is held back at %d per second leaves after the wait only', (perSecond) => {
  const { intervalMs, burst } = numberPace(perSecond);
  const heldMs = HELD_BACK_PACE.intervalMs * (HELD_BACK_PACE.burst - 1);
  expect(intervalMs * (burst - 1)).toBeLessThanOrEqual(heldMs + 1e-6);
});
