import { expect, test } from 'vitest';
import { RunShare } from '../../../src/engine/deliveries/loop/run-share.ts';

const MINUTE_MS = 60_000;

test('counts the attempts of the last 15 minutes, and those that a run shows', () => {
  let nowMs = 0;
  const share = new RunShare(() => nowMs);
  expect(share.lately()).toEqual({ attempts: 0, withRun: 0 });
  for (let minute = 0; minute < 30; minute += 1) {
    nowMs = minute * MINUTE_MS;
    share.lately();
    for (const hasRun of [true, false, false]) share.note(hasRun);
  }
  expect(share.lately()).toEqual({ attempts: 45, withRun: 15 });
  expect(share.total()).toEqual({ attempts: 90, withRun: 30 });
  nowMs += 14 * MINUTE_MS;
  expect(share.lately()).toEqual({ attempts: 3, withRun: 1 });
  nowMs += MINUTE_MS;
  expect(share.lately()).toEqual({ attempts: 0, withRun: 0 });
});
