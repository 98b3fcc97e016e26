import { expect, onTestFinished, test } from 'vitest';
import { type Loop, startLoop, type WorkWatch } from '../../../src/platform/loop.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { makeWorkWatch } from '../../../src/platform/work-watch.ts';
import { silentLogger } from '../../support/silent-logger.ts';

/** A watch over `prober`, of a database that answers as it is told. */
function watched(answer: () => Promise<boolean> | boolean) {
  const looks: string[] = [];
  const raw = async (text: string) => {
    looks.push(text);
    return { rows: [{ prober: await answer() }], rowCount: 1, command: 'SELECT' };
  };
  const database = { raw } as unknown as Database;
  const watch = makeWorkWatch();
  const loop = turning(watch);
  const watching = watch.start({ database, logger: silentLogger, standsAside: () => false });
  onTestFinished(async () => void (await Promise.all([loop.stop(), watching.stop()])));
  return { ...loop, watching, looks };
}

function turning(watch: WorkWatch): Loop & { turns: boolean[] } {
  const turns: boolean[] = [];
  const loop = startLoop({
    name: 'prober',
    logger: silentLogger,
    pollMs: () => 1,
    work: { watch, hasWork: 'there is a probe' },
    turn: async (isIdle) => {
      turns.push(isIdle);
      return false;
    },
  });
  return { ...loop, turns };
}

/** For as long as a loop that is not idle has many turns. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 100));

test('a loop rests while the watch finds nothing for it, and has a turn as soon as it finds something', async () => {
  let hasWork = false;
  const { turns, looks, watching } = watched(() => hasWork);
  await settled();
  expect(looks[0]).toContain('(there is a probe) as "prober"');
  const before = turns.length;
  await settled();
  expect(turns.length).toBe(before);
  hasWork = true;
  watching.wake();
  await expect.poll(() => turns.length).toBeGreaterThan(before + 5);
  expect(turns.at(-1)).toBe(false);
});

test('what wakes a loop while the watch looks is not taken for nothing', async () => {
  const { promise: looked, resolve } = Promise.withResolvers<boolean>();
  const { turns, looks, wake } = watched(() => (looks.length === 1 ? looked : false));
  await expect.poll(() => looks.length).toBe(1);
  wake();
  resolve(false);
  const before = turns.length;
  await expect.poll(() => turns.length).toBeGreaterThan(before + 5);
});

test('loops look for themselves when the watch gets no answer', async () => {
  const { promise: never, resolve } = Promise.withResolvers<boolean>();
  let answer: Promise<boolean> | boolean = false;
  const { turns, watching } = watched(() => answer);
  onTestFinished(() => resolve(false));
  await settled();
  const before = turns.length;
  answer = never;
  watching.wake();
  await expect.poll(() => turns.length, { timeout: 10_000 }).toBeGreaterThan(before + 5);
});
