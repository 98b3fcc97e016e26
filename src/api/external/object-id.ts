import { notFound } from '../errors/api-error.ts';

const DIGITS = /^[1-9]\d{0,18}$/;
const MAX_ID = 2n ** 63n - 1n;

/** One of our ids from a path. What cannot be an id is answered as what does not exist: throws ApiError 404. */
export function objectId(text: string): string {
  if (!DIGITS.test(text) || BigInt(text) > MAX_ID) throw notFound();
  return text;
}
