import { notFound } from '../errors/api-error.ts';

const DIGITS = /^[1-9]\d{0,18}$/;
const MAX_ID = 2n ** 63n - 1n;

/** One of our ids from a path. What cannot be an id is answered as what does not exist: throws ApiError 404. */
export function objectId(text: string): string {
  if (!DIGITS.test(text) || BigInt(text) > MAX_ID) throw notFound();
  return text;
}

const MAX_ACCOUNT_DIGITS = 18;

/** As `objectId`, for what the accounts hold (endpoints, replays), whose ids are shorter. Throws ApiError 404. */
export function accountObjectId(text: string): string {
  if (text.length > MAX_ACCOUNT_DIGITS) throw notFound();
  return objectId(text);
}
