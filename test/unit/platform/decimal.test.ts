import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addDecimals,
  type Decimal,
  formatDecimal,
  jsonNumberText,
  multiplyDecimals,
  parseDecimal,
  ZERO,
} from '../../../src/platform/decimal.ts';

function decimal(text: string): Decimal {
  const value = parseDecimal(text);
  if (value === null) throw new Error(`${text} is no number`);
  return value;
}

describe('decimal arithmetic', () => {
  test.each([
    ['0.1', '0.2', '0.3'],
    ['149.5', '-149.50', '0'],
    ['1e3', '1E-3', '1000.001'],
    ['9007199254740993', '1', '9007199254740994'],
    ['-0', '-0.00', '0'],
    ['-0.5', '0.25', '-0.25'],
  ])('%s + %s = %s', (left, right, sum) => {
    expect(formatDecimal(addDecimals(decimal(left), decimal(right)))).toBe(sum);
  });

  test.each([
    ['3', '149.5', '448.5'],
    ['0.1', '0.2', '0.02'],
    ['1e2', '1e-2', '1'],
    ['-3', '0.5', '-1.5'],
    ['0', '-5', '0'],
  ])('%s × %s = %s', (left, right, product) => {
    expect(formatDecimal(multiplyDecimals(decimal(left), decimal(right)))).toBe(product);
  });

  test('a sum of products equals an independent computation in whole units of 10^-12', () => {
    const price = fc.record({
      sign: fc.constantFrom('', '-'),
      whole: fc.nat().map(String),
      fraction: fc.stringMatching(/^\d{0,4}$/),
      exponent: fc.integer({ min: -4, max: 6 }),
    });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(1000), price)), (lines) => {
        let expected = 0n;
        let sum = ZERO;
        for (const [quantity, { sign, whole, fraction, exponent }] of lines) {
          const text = `${sign}${whole}${fraction && `.${fraction}`}e${exponent}`;
          sum = addDecimals(sum, multiplyDecimals(decimal(String(quantity)), decimal(text)));
          const units = BigInt(whole + fraction) * 10n ** BigInt(12 - fraction.length + exponent);
          expected += BigInt(quantity) * (sign ? -units : units);
        }
        const [whole = '', fraction = ''] = formatDecimal(sum).split('.');
        expect(BigInt(whole + fraction.padEnd(12, '0'))).toBe(expected);
        expect(fraction).not.toMatch(/0$/);
      }),
    );
  });

  test('what is no number, or beyond a double, is refused instead of computed', () => {
    for (const text of ['', 'x', '1,5', '0x1', '1e999999999', '1e-400', 'Infinity', ' 1', '1'.repeat(500)]) {
      expect(parseDecimal(text)).toBeNull();
    }
  });
});

describe('numbers in strings', () => {
  test.each<[string, string | null]>([
    ['21000', '21000'],
    ['00100', '100'],
    ['-007.50', '-7.50'],
    ['000', '0'],
    ['00.5', '0.5'],
    ['-0', '-0'],
    ['1e3', '1e3'],
    ['+5', null],
    ['.5', null],
    ['5.', null],
    ['1_000', null],
    ['१२', null],
    ['', null],
  ])('%s goes out as %s', (text, expected) => {
    expect(jsonNumberText(text)).toBe(expected);
  });
});
