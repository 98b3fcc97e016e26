import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeStartAllowance } from '../../../src/worker/dispatch/start-allowance.ts';

const CORES = 2;
const PER_SECOND = 10;

function allowanceAt() {
  let nowMs = 0;
  const allowance = makeStartAllowance(CORES, () => nowMs);
  return {
    ...allowance,
    wait: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('five workflow starts per second and core, of which a second’s worth can be saved up', () => {
  const { available, spend, wait } = allowanceAt();
  expect(available()).toBe(PER_SECOND);
  spend(PER_SECOND);
  expect(available()).toBe(0);
  wait(99);
  expect(available()).toBe(0);
  wait(1);
  expect(available()).toBe(1);
  wait(3_600_000);
  expect(available()).toBe(PER_SECOND);
});

test('what was spent beyond it is made up for', () => {
  const { available, spend, wait } = allowanceAt();
  spend(3 * PER_SECOND);
  wait(1_900);
  expect(available()).toBeLessThanOrEqual(0);
  wait(200);
  expect(available()).toBe(1);
});

test('property: over any time never more than the rate and one burst, however often it is asked', () => {
  const steps = fc.array(fc.record({ waitMs: fc.nat(500), wanted: fc.nat(20) }), { maxLength: 200 });
  fc.assert(
    fc.property(steps, (plan) => {
      const { available, spend, wait } = allowanceAt();
      let [spent, elapsedMs] = [0, 0];
      for (const { waitMs, wanted } of plan) {
        wait(waitMs);
        elapsedMs += waitMs;
        const starts = Math.min(wanted, available());
        spend(starts);
        spent += starts;
        expect(spent).toBeLessThanOrEqual(PER_SECOND + (elapsedMs / 1_000) * PER_SECOND + 1e-6);
      }
    }),
  );
});
