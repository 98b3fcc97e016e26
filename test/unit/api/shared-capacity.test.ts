import { expect, test } from 'vitest';
import { createSharedCapacity } from '../../../src/api/shares/shared-capacity.ts';

function start(capacity: number, ownerShare: number) {
  const dropped: string[] = [];
  const shared = createSharedCapacity({ capacity: () => capacity, ownerShare });
  const hold = (owner: string, name: string, amount: number) => {
    const holding = shared.hold(owner, () => dropped.push(name));
    holding.grow(amount);
    return holding;
  };
  return { dropped, hold };
}

test('who has held longest makes room for the newest, as many as are needed', () => {
  const { dropped, hold } = start(10, 10);
  for (const name of ['a', 'b', 'c', 'd']) hold(name, name, 2);
  hold('e', 'e', 5);
  expect(dropped).toEqual(['a', 'b']);
});

test('of those that have more than their share, the oldest goes before everybody else', () => {
  const { dropped, hold } = start(10, 4);
  hold('small', 'small', 3);
  hold('large', 'large 1', 3);
  hold('large', 'large 2', 3);
  hold('other', 'other', 3);
  expect(dropped).toEqual(['large 1']);
  // Now nobody has more than a share, and age alone counts.
  hold('third', 'third', 3);
  expect(dropped).toEqual(['large 1', 'small']);
});

test('what grows beyond everything goes itself, and what is given back is free', () => {
  const { dropped, hold } = start(10, 10);
  const first = hold('a', 'a', 10);
  first.end();
  first.end();
  const second = hold('b', 'b', 10);
  expect(dropped).toEqual([]);
  second.grow(1);
  expect(dropped).toEqual(['b']);
  // Of what is gone nothing is counted any more.
  second.grow(100);
  hold('c', 'c', 10);
  expect(dropped).toEqual(['b']);
});

test('what has settled is never dropped, counts until it ends, and leaves its owner no more than a share', () => {
  const { dropped, hold } = start(10, 4);
  const settled = hold('busy', 'settled', 4);
  settled.settle(3);
  hold('busy', 'further', 1);
  expect(dropped).toEqual([]);
  hold('busy', 'too much', 2);
  expect(dropped).toEqual(['too much']);
  hold('other', 'other 1', 3);
  hold('third', 'third', 3);
  expect(dropped).toEqual(['too much']);
  hold('fourth', 'fourth', 1);
  expect(dropped).toEqual(['too much', 'further']);
  settled.end();
  hold('fifth', 'fifth', 3);
  expect(dropped).toEqual(['too much', 'further']);
});

test('while nothing can be dropped, newcomers are', () => {
  const { dropped, hold } = start(10, 4);
  const all = ['a', 'b', 'c'].map((name) => hold(name, name, 3));
  for (const one of all) one.settle(3);
  hold('d', 'd', 2);
  expect(dropped).toEqual(['d']);
  all[0]?.end();
  hold('d', 'd again', 2);
  expect(dropped).toEqual(['d']);
});
