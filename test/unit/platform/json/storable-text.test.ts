import fc from 'fast-check';
import { expect, test } from 'vitest';
import { storableText } from '../../../../src/platform/json/storable-text.ts';
import { anyText } from '../../../support/any-text.ts';

test('storable text is well-formed, free of U+0000, within its limit, and unchanged where it can be', () => {
  fc.assert(
    fc.property(anyText(), fc.nat(20), (text, maxChars) => {
      const stored = storableText(text, maxChars);
      expect(stored.isWellFormed()).toBe(true);
      expect(stored).not.toContain('\0');
      expect(stored.length).toBeLessThanOrEqual(maxChars);
      if (text.length <= maxChars && text.isWellFormed() && !text.includes('\0')) expect(stored).toBe(text);
    }),
  );
});

test('a cut never splits a character in two', () => {
  expect(storableText('ab😀', 3)).toBe('ab');
  expect(storableText('ab😀', 4)).toBe('ab😀');
});
