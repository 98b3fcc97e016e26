import { expect, test } from 'vitest';
import { takeRoom } from '../../../../src/features/messages/send/schedule-room.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';

const MOST = 100_000;

/** A WABA with so many, to which every place that is taken is added. */
function wabaWith(have: number) {
  const database = {} as Database;
  const waba = { have, counts: 0 };
  const take = async (nowMs = 0) => {
    const count = async () => {
      waba.counts += 1;
      return waba.have;
    };
    const isTaken = await takeRoom(database, { wabaId: '1', most: MOST }, count, nowMs);
    if (isTaken) waba.have += 1;
    return isTaken;
  };
  return { waba, take };
}

test('what there is is counted rarely until it is full, and then once a second', async () => {
  const { waba, take } = wabaWith(0);
  let taken = 0;
  while (await take()) taken += 1;
  expect(taken).toBeGreaterThanOrEqual(MOST);
  expect(taken).toBeLessThanOrEqual(MOST + 100);
  expect(waba.counts).toBeLessThan(40);
  const { counts } = waba;
  for (let n = 0; n < 1_000; n += 1) expect(await take(n)).toBe(false);
  expect(waba.counts).toBe(counts);
  waba.have = MOST - 1;
  expect(await take(1_000)).toBe(true);
});

test('a count is not good for longer than a minute, and only for its own WABA', async () => {
  const { waba, take } = wabaWith(0);
  await take();
  waba.have = MOST;
  expect([await take(59_999), await take(60_000)]).toEqual([true, false]);
  const { take: takeOther } = wabaWith(0);
  expect(await takeOther()).toBe(true);
});
