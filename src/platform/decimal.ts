/** `unscaled` × 10^-`scale`, exactly. */
export type Decimal = { readonly unscaled: bigint; readonly scale: number };

export const ZERO: Decimal = { unscaled: 0n, scale: 0 };

const JSON_NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
// Beyond the range of a double no receiver could read the number; it also bounds the work on hostile input.
const MAX_EXPONENT = 308;
const MAX_NUMBER_CHARS = 400;

/**
 * The text as a JSON number with every digit kept: itself if it is one, without leading zeros if it is a number
 * written with some (upstream sends amounts as strings of digits at times). Null when it is no number.
 */
export function jsonNumberText(text: string): string | null {
  const trimmed = text.replace(/^(-?)0+(?=\d)/, '$1');
  return trimmed.length <= MAX_NUMBER_CHARS && JSON_NUMBER.test(trimmed) ? trimmed : null;
}

/** Reads a JSON number exactly; null when it is none, or beyond the range of a double. */
export function parseDecimal(text: string): Decimal | null {
  const match = text.length <= MAX_NUMBER_CHARS ? JSON_NUMBER.exec(text) : null;
  if (!match) return null;
  const [, sign = '', whole = '0', fraction = '', exponentText = '0'] = match;
  const exponent = Number(exponentText);
  if (Math.abs(exponent) > MAX_EXPONENT) return null;
  const digits = BigInt(whole + fraction);
  const unscaled = sign === '-' ? -digits : digits;
  const scale = fraction.length - exponent;
  return scale >= 0 ? { unscaled, scale } : { unscaled: unscaled * 10n ** BigInt(-scale), scale: 0 };
}

export function addDecimals(left: Decimal, right: Decimal): Decimal {
  const scale = Math.max(left.scale, right.scale);
  const unscaled =
    left.unscaled * 10n ** BigInt(scale - left.scale) + right.unscaled * 10n ** BigInt(scale - right.scale);
  return { unscaled, scale };
}

export function multiplyDecimals(left: Decimal, right: Decimal): Decimal {
  return { unscaled: left.unscaled * right.unscaled, scale: left.scale + right.scale };
}

/** The number as JSON: no exponent, no zeros at the end of the fraction, no negative zero. */
export function formatDecimal(value: Decimal): string {
  const isNegative = value.unscaled < 0n;
  const digits = (isNegative ? -value.unscaled : value.unscaled).toString().padStart(value.scale + 1, '0');
  const whole = digits.slice(0, digits.length - value.scale);
  const fraction = digits.slice(digits.length - value.scale).replace(/(?<!0)0+$/, '');
  return `${isNegative ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}
