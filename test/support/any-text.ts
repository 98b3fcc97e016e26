import fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };
const CODE_POINTS = 0x110000 - SURROGATES.count;

/** Any code point but halves of surrogate pairs. fast-check's own unit `binary` says the same, and costs a second to build. */
export const codePoint = fc.nat(CODE_POINTS - 1).map(
  (n) => String.fromCodePoint(n < SURROGATES.first ? n : n + SURROGATES.count),
  // With it, fast-check also tries texts that are dangerous in JavaScript, such as __proto__.
  (text) => {
    const point = typeof text === 'string' ? (text.codePointAt(0) ?? 0) : Number.NaN;
    if (Number.isNaN(point) || String.fromCodePoint(point) !== text) throw new Error('not one code point');
    return point < SURROGATES.first ? point : point - SURROGATES.count;
  },
);

/** Any well-formed text. */
export function anyText(limits: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.string({ ...limits, unit: codePoint });
}
