import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stateAfter } from '../../support/state-after.ts';

const LADDER = ['accepted', 'sent', 'delivered', 'read', 'played'];

describe('the state of an outbound message', () => {
  test('never moves down the ladder, whatever comes in whatever order', () => {
    const status = fc.constantFrom(...LADDER, 'failed', 'deleted', 'toString');
    fc.assert(
      fc.property(fc.array(status, { minLength: 1 }), (incoming) => {
        let state: string | null = null;
        for (const next of incoming) {
          const after = stateAfter(state, next);
          if (state !== null && LADDER.includes(state) && after !== 'failed') {
            expect(LADDER.indexOf(after)).toBeGreaterThanOrEqual(LADDER.indexOf(state));
          }
          if (state === 'failed') expect(after).toBe('failed');
          if (after === 'failed' && state !== 'failed')
            expect(['delivered', 'read', 'played']).not.toContain(state);
          state = after;
        }
      }),
    );
  });

  test('ends at the highest status that came, in every permutation', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(LADDER, { minLength: 1 }), (incoming) => {
        const state = incoming.reduce<string | null>(stateAfter, null);
        expect(LADDER.indexOf(state ?? '')).toBe(
          Math.max(...incoming.map((status) => LADDER.indexOf(status))),
        );
      }),
    );
  });

  test.each<[string | null, string, string]>([
    [null, 'sent', 'sent'],
    [null, 'failed', 'failed'],
    [null, 'warning', 'warning'],
    ['accepted', 'failed', 'failed'],
    ['sent', 'failed', 'failed'],
    ['delivered', 'failed', 'delivered'],
    ['read', 'failed', 'read'],
    ['failed', 'delivered', 'failed'],
    ['sent', 'warning', 'sent'],
    ['failed', 'warning', 'failed'],
    ['warning', 'deleted', 'warning'],
    ['warning', 'sent', 'sent'],
    ['warning', 'failed', 'failed'],
    ['read', 'sent', 'read'],
  ])('%s, then %s, is %s', (current, incoming, expected) => {
    expect(stateAfter(current, incoming)).toBe(expected);
  });
});
