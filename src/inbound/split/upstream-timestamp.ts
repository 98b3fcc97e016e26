import { type JsonNode, textOf } from '../../platform/json/json-text.ts';

const MAX_SECONDS = 253_402_300_799; // 9999-12-31T23:59:59Z
// Larger numbers are milliseconds: in seconds they would lie after the year 5138.
const SMALLEST_MILLISECONDS = 100_000_000_000;

/**
 * The moment an upstream `timestamp` names. Documented as a string of epoch seconds; numbers and milliseconds are
 * seen too. Null when it is missing or makes no sense.
 */
export function timestampOf(node: JsonNode | null): Date | null {
  const text = textOf(node);
  if (text === null || !/^\d{1,20}(\.\d{1,9})?$/.test(text)) return null;
  const value = Number(text);
  const seconds = value >= SMALLEST_MILLISECONDS ? value / 1000 : value;
  if (seconds <= 0 || seconds > MAX_SECONDS) return null;
  return new Date(Math.trunc(seconds * 1000));
}
