import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeCalmWatch, makeFailureAllowance } from '../../../src/engine/deliveries/loop/run-allowance.ts';

const CORES = 2;
const PER_SECOND = 10;

function allowance() {
  let nowMs = 0;
  const made = makeFailureAllowance(CORES, () => nowMs);
  const takeAll = () => {
    let taken = 0;
    while (made.take(true)) taken += 1;
    return taken;
  };
  const takeMore = () => {
    let taken = 0;
    while (made.take(false)) taken += 1;
    return taken;
  };
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { ...made, takeAll, takeMore, wait };
}

test('runs of failures: five per second and core, of which a few can be saved up', () => {
  const { takeAll, wait } = allowance();
  expect(takeAll()).toBe(20);
  wait(99);
  expect(takeAll()).toBe(0);
  wait(1);
  expect(takeAll()).toBe(1);
  wait(3_600_000);
  expect(takeAll()).toBe(20);
});

test('processes share it evenly', () => {
  const { takeAll, wait, shareWith } = allowance();
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

test('a tenant that has runs open leaves starts to those that have none, however long its storm lasts', () => {
  const { takeAll, takeMore, wait, shareWith } = allowance();
  expect(takeMore()).toBe(15);
  for (let second = 0; second < 60; second += 1) {
    wait(1_000);
    expect(takeMore()).toBe(10);
  }
  expect(takeAll()).toBe(5);
  shareWith(40);
  wait(60_000);
  expect(takeMore()).toBe(1);
});

test('what is saved up is shared too: eight processes start no more at once than one', () => {
  const { takeAll, wait, shareWith } = allowance();
  shareWith(8);
  expect(8 * takeAll()).toBeLessThanOrEqual(20);
  wait(60_000);
  expect(8 * takeAll()).toBeLessThanOrEqual(20);
  // More processes than starts are saved: each may make one.
  shareWith(40);
  wait(60_000);
  expect(takeAll()).toBe(1);
});

test('property: over any time never more than the rate and what was saved, however often it is asked', () => {
  const steps = fc.array(fc.record({ waitMs: fc.nat(500), wanted: fc.nat(20) }), { maxLength: 200 });
  fc.assert(
    fc.property(steps, (plan) => {
      const { take, wait } = allowance();
      let [taken, elapsedMs] = [0, 0];
      for (const { waitMs, wanted } of plan) {
        wait(waitMs);
        elapsedMs += waitMs;
        for (let n = 0; n < wanted; n += 1) if (take(true)) taken += 1;
        expect(taken).toBeLessThanOrEqual(20 + (elapsedMs / 1_000) * PER_SECOND + 1e-6);
      }
    }),
  );
});

test('calm up to five first attempts per second and core, a few more at once, and not for seconds after a burst', () => {
  let nowMs = 0;
  const { note, isCalm } = makeCalmWatch(CORES, () => nowMs);
  const noteAll = (count: number) => {
    for (let n = 0; n < count; n += 1) note();
    return isCalm();
  };
  expect(noteAll(10)).toBe(true);
  expect(noteAll(1)).toBe(false);
  for (let second = 0; second < 10; second += 1) {
    nowMs += 1_000;
    expect(noteAll(PER_SECOND / 2)).toBe(true);
  }
  expect(noteAll(1_000)).toBe(false);
  nowMs += 1_999;
  expect(isCalm()).toBe(false);
  nowMs += 200;
  expect(isCalm()).toBe(true);
  for (let step = 0; step < 200; step += 1) {
    nowMs += 20;
    note();
  }
  expect(isCalm()).toBe(false);
});

test('with eight processes a burst is as long forgotten as with one, and no more at once is calm', () => {
  let nowMs = 0;
  const { note, isCalm, shareWith } = makeCalmWatch(CORES, () => nowMs);
  shareWith(8);
  let calm = 0;
  for (; isCalm(); calm += 1) note();
  expect(8 * (calm - 1)).toBeLessThanOrEqual(10);
  for (let n = 0; n < 500; n += 1) note();
  nowMs += 1_500;
  expect(isCalm()).toBe(false);
  nowMs += 1_500;
  expect(isCalm()).toBe(true);
});
