import { expect, test } from 'vitest';
import { makeAttemptSlots } from '../../../src/deliveries/loop/attempt-slots.ts';

function slotsAt() {
  let nowMs = 0;
  const slots = makeAttemptSlots(undefined, () => nowMs);
  const take = (count: number) =>
    Array.from({ length: count }, () => {
      const attempt = { endpointId: '7', startMs: nowMs };
      slots.take(attempt);
      return attempt;
    });
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { slots, take, wait };
}

test('512 attempts are made side by side', () => {
  const { slots, take } = slotsAt();
  const attempts = take(512);
  expect(slots.free()).toBe(0);
  for (const attempt of attempts.slice(0, 12)) slots.giveBack(attempt);
  expect(slots.free()).toBe(12);
});

test('those that wait long for their answer leave their slots to others, up to 4,096 in all', () => {
  const { slots, take, wait } = slotsAt();
  for (let group = 1; group <= 8; group += 1) {
    take(512);
    expect(slots.free()).toBe(0);
    wait(500);
    expect(slots.free()).toBe(group < 8 ? 512 : 0);
  }
  expect(slots.taken()).toBe(4_096);
});

test('what is answered counts until it is recorded, however long that takes', () => {
  const { slots, take, wait } = slotsAt();
  for (const attempt of take(512)) slots.answered(attempt);
  wait(60_000);
  expect(slots.free()).toBe(0);
});

test('no more is claimed while many late answers are not recorded yet', () => {
  const { slots, take, wait } = slotsAt();
  const late = take(512);
  wait(500);
  expect(slots.free()).toBe(512);
  late.push(...take(512));
  wait(500);
  expect(slots.free()).toBe(512);
  for (const attempt of late) slots.answered(attempt);
  expect(slots.free()).toBe(0);
  for (const attempt of late) slots.giveBack(attempt);
  expect(slots.free()).toBe(512);
  expect(slots.taken()).toBe(0);
});
