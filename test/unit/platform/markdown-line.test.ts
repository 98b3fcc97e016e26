import fc from 'fast-check';
import { expect, test } from 'vitest';
import { markdownLine } from '../../../src/platform/markdown-line.ts';

/** Any characters, halves of surrogate pairs among them. */
const anyText = fc
  .array(fc.integer({ min: 0, max: 0x10ffff }), { maxLength: 100 })
  .map((codes) => String.fromCodePoint(...codes));

test.each([
  ['order system', 'order system'],
  ['[click](https://evil.example)', 'click (https://evil.example)'],
  ['**bold** `code` <b>x</b>', 'bold code b x /b'],
  ['two\nlines\u2028three', 'two lines three'],
  ['a\u0000b', 'a b'],
])('%j becomes %j', (text, line) => {
  expect(markdownLine(text, 400)).toBe(line);
});

test('a line never has more bytes than it may, and cuts no character in two', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 3, max: 200 }), (text, max) => {
      const line = markdownLine(text, max);
      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(max);
      expect(line.isWellFormed()).toBe(true);
      expect(line).not.toMatch(/[\n\r`*_[\]<>]/);
    }),
  );
});
