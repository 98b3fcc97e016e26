import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readDecision } from '../../../src/workflows/decision-signal.ts';

test.each([
  [[], { note: '', by: null }],
  [[null], { note: '', by: null }],
  [['fine'], { note: 'fine', by: null }],
  [[{}], { note: '', by: null }],
  [[{ note: 'fine' }], { note: 'fine', by: null }],
  [[{ note: 'fine', by: 'Kim' }], { note: 'fine', by: 'Kim' }],
])('%j is a decision', (args, decision) => {
  expect(readDecision('approved', args)).toEqual({ state: 'approved', ...decision });
});

test.each([[[1]], [[true]], [[['a']]], [['a', 'b']], [[{ note: 1 }]], [[{ by: [] }]], [[{ nott: 'typo' }]]])(
  '%j is ignored: a mistake must not decide anything',
  (args) => {
    expect(readDecision('denied', args)).toBeNull();
  },
);

test('whatever a signal brings, nothing is thrown', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue(), { maxLength: 3 }), (args) => {
      const decision = readDecision('approved', args);
      return decision === null || typeof decision.note === 'string';
    }),
  );
});
