import { expect, test } from 'vitest';
import { paceOfNumber, upstreamPerSecond } from '../../../src/features/accounts/number-pace.ts';

test.each([
  ['STANDARD', false, 80],
  ['HIGH', false, 1_000],
  ['STANDARD', true, 20],
  ['HIGH', true, 20],
  [null, true, 20],
  ['NOT_APPLICABLE', false, null],
  [null, false, null],
] as const)(
  'upstream lets a number of the level %s, in the app too %s, send %s a second',
  (level, isInApp, pace) => {
    expect(upstreamPerSecond(level, isInApp)).toBe(pace);
  },
);

test.each([
  ['what an operator set for the number', { messagesPerSecond: 8, upstreamPerSecond: 20 }, 50, 8],
  ['then what one set for all', { messagesPerSecond: null, upstreamPerSecond: 20 }, 50, 50],
  ['then what upstream allows', { messagesPerSecond: null, upstreamPerSecond: 20 }, null, 20],
  ['then what it allows most numbers', { messagesPerSecond: null, upstreamPerSecond: null }, null, 80],
] as const)('the pace is %s', (_name, known, setting, pace) => {
  expect(paceOfNumber(known, setting)).toBe(pace);
});
