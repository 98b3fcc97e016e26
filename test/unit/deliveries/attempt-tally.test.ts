import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeAttemptTally } from '../../../src/engine/deliveries/loop/attempt-tally.ts';

test('the five endpoints with the most attempts are named, most first, until the counts are cleared', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 200 }), (ids) => {
      const tally = makeAttemptTally();
      for (const id of ids) tally.note(String(id));
      const counts = Object.values(Object.groupBy(ids, String)).map((group) => group?.length ?? 0);
      expect(tally.busiest().map(({ attempts }) => attempts)).toEqual(
        counts.sort((one, other) => other - one).slice(0, 5),
      );
      for (const { endpointId, attempts } of tally.busiest()) {
        expect(attempts).toBe(ids.filter((id) => String(id) === endpointId).length);
      }
      tally.clear();
      expect(tally.busiest()).toEqual([]);
    }),
  );
});
