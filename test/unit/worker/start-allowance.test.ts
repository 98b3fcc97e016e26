import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeRetryAllowance, makeStartAllowance } from '../../../src/deliveries/loop/start-allowance.ts';

const CORES = 2;
const PER_SECOND = 10;

function allowanceAt(make: typeof makeStartAllowance) {
  let nowMs = 0;
  const allowance = make(CORES, () => nowMs);
  const takeAll = () => {
    let taken = 0;
    while (allowance.take()) taken += 1;
    return taken;
  };
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { ...allowance, takeAll, wait };
}

test.each([
  ['head starts', makeStartAllowance, 2],
  ['retry workflows', makeRetryAllowance, 20],
])('%s: five per second and core, of which a few can be saved up', (_, make, saved) => {
  const { takeAll, wait } = allowanceAt(make);
  expect(takeAll()).toBe(saved);
  wait(99);
  expect(takeAll()).toBe(0);
  wait(1);
  expect(takeAll()).toBe(1);
  wait(3_600_000);
  expect(takeAll()).toBe(saved);
});

test('processes share it evenly', () => {
  const { takeAll, wait, shareWith } = allowanceAt(makeStartAllowance);
  takeAll();
  shareWith(4);
  wait(399);
  expect(takeAll()).toBe(0);
  wait(1);
  expect(takeAll()).toBe(1);
  // Before a process knows of any, itself included, it is alone.
  shareWith(0);
  wait(100);
  expect(takeAll()).toBe(1);
});

test('property: over any time never more than the rate and what was saved, however often it is asked', () => {
  const steps = fc.array(fc.record({ waitMs: fc.nat(500), wanted: fc.nat(20) }), { maxLength: 200 });
  fc.assert(
    fc.property(steps, fc.constantFrom(2, 20), (plan, saved) => {
      const { take, wait } = allowanceAt(saved === 2 ? makeStartAllowance : makeRetryAllowance);
      let [taken, elapsedMs] = [0, 0];
      for (const { waitMs, wanted } of plan) {
        wait(waitMs);
        elapsedMs += waitMs;
        for (let n = 0; n < wanted; n += 1) if (take()) taken += 1;
        expect(taken).toBeLessThanOrEqual(saved + (elapsedMs / 1_000) * PER_SECOND + 1e-6);
      }
    }),
  );
});
