import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startLoop } from '../../../src/platform/loop.ts';
import { silentLogger } from '../../support/silent-logger.ts';

describe('a loop', () => {
  test('turns until nothing is left, then only when woken', async () => {
    let turns = 0;
    const loop = startLoop({
      name: 'number-schedule',
      logger: silentLogger,
      turn: async () => {
        turns += 1;
        return turns < 3;
      },
    });
    await sleep(20);
    expect(turns).toBe(3);
    loop.wake();
    await sleep(20);
    expect(turns).toBe(4);
    await loop.stop();
  });

  test('that stands aside looks seldom, is woken as ever, and looks as usual once it does not any more', async () => {
    let turns = 0;
    let isAside = true;
    const loop = startLoop({
      name: 'number-schedule',
      pollMs: () => 1,
      standsAside: () => isAside,
      logger: silentLogger,
      turn: async () => {
        turns += 1;
        return false;
      },
    });
    await sleep(200);
    expect(turns).toBe(1);
    loop.wake();
    await expect.poll(() => turns).toBe(2);
    isAside = false;
    loop.wake();
    await expect.poll(() => turns).toBeGreaterThan(10);
    await loop.stop();
  });

  test('a wake-up during a turn is not lost', async () => {
    let turns = 0;
    const loop = startLoop({
      name: 'number-schedule',
      logger: silentLogger,
      turn: async () => {
        turns += 1;
        await sleep(20);
        return false;
      },
    });
    await sleep(5);
    loop.wake();
    await sleep(80);
    expect(turns).toBe(2);
    await loop.stop();
  });

  test('does not spin while its turn fails, not even when woken all the time', async () => {
    let turns = 0;
    const loop = startLoop({
      name: 'prober',
      pollMs: () => 1,
      logger: silentLogger,
      turn: async () => {
        turns += 1;
        throw new Error('away');
      },
    });
    for (let n = 0; n < 50; n += 1) {
      loop.wake();
      await sleep(10);
    }
    expect(turns).toBeGreaterThanOrEqual(2);
    expect(turns).toBeLessThan(6);
    await loop.stop();
  });

  test('stop waits for the turn under way and starts no other', async () => {
    let finished = 0;
    const loop = startLoop({
      name: 'prober',
      pollMs: () => 1,
      logger: silentLogger,
      turn: async () => {
        await sleep(30);
        finished += 1;
        return true;
      },
    });
    await sleep(5);
    await loop.stop();
    expect(finished).toBe(1);
    await sleep(60);
    expect(finished).toBe(1);
  });

  test('of the leader has no turns in another worker, and says so with no failure', async () => {
    let isLeader = false;
    let turns = 0;
    const loop = startLoop({
      name: 'order-release',
      logger: silentLogger,
      isLeader: () => isLeader,
      turn: async () => {
        turns += 1;
        return false;
      },
    });
    loop.wake();
    await sleep(20);
    expect([turns, loop.status().failingMs]).toEqual([0, 0]);
    isLeader = true;
    loop.wake();
    await sleep(20);
    expect(turns).toBe(1);
    await loop.stop();
  });
});
