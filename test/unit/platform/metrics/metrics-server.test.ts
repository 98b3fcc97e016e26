import { describe, expect, test } from 'vitest';
import { makeFiguresCache } from '../../../../src/platform/metrics/metrics-server.ts';

/** A cache on a clock of its own over a `read` that the test answers. */
function cache(waitMs = 10_000) {
  const clock = { ms: 0 };
  const reads: PromiseWithResolvers<number>[] = [];
  const read = () => {
    const answer = Promise.withResolvers<number>();
    reads.push(answer);
    return answer.promise;
  };
  return { clock, reads, figures: makeFiguresCache({ read, now: () => clock.ms, waitMs }) };
}

describe('the figures of the database', () => {
  test('are read once for all who ask within five seconds, and again after', async () => {
    const { clock, reads, figures } = cache();
    const both = Promise.all([figures(), figures()]);
    reads[0]?.resolve(1);
    expect(await both).toEqual([1, 1]);
    clock.ms = 4_999;
    expect(await figures()).toBe(1);
    clock.ms = 5_000;
    const next = figures();
    reads[1]?.resolve(2);
    expect(await next).toBe(2);
    expect(reads).toHaveLength(2);
  });

  test('are null when they cannot be read', async () => {
    const { reads, figures } = cache();
    const asked = figures();
    reads[0]?.reject(new Error('away'));
    expect(await asked).toBeNull();
  });

  test('are waited for a limited time, and a read that hangs is the only one', async () => {
    const { clock, reads, figures } = cache(20);
    const asked = figures();
    expect(await asked).toBeNull();
    clock.ms = 60_000;
    const again = figures();
    reads[0]?.resolve(7);
    expect(await again).toBe(7);
    expect(reads).toHaveLength(1);
  });
});
