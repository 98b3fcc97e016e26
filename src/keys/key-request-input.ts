import type { Database } from '../platform/postgres/database.ts';
import {
  checkDescription,
  checkingMember,
  checkName,
  checkRowId,
  invalidValue,
  RequestError,
} from '../platform/request-input.ts';
import { findApiKeyDetails } from './api-key-admin.ts';
import { checkScopes } from './api-keys.ts';

/** What is asked for; left out: all scopes, no end, no key replaced. */
export type GivenKeyRequest = {
  /** What the key is for; it becomes its name. */
  purpose: string;
  scopes?: readonly string[];
  /** How long it is to work from its reveal on, in days; null: until it is revoked. */
  validDays?: number | null;
  /** The key that it takes the place of. */
  replacesKeyId?: string | null;
  /** How long that one works on after the reveal, in hours; null: until it is revoked. */
  overlapHours?: number | null;
};

const MAX_VALID_DAYS = 3_650;
const MAX_OVERLAP_HOURS = 90 * 24;

/** What was asked for, checked. Throws RequestError: `invalid_value`, `unknown_key`, `key_not_active`. */
export async function checkKeyRequest(database: Database, wabaId: string, given: GivenKeyRequest) {
  const replacesKeyId = given.replacesKeyId ?? null;
  const overlapHours = given.overlapHours ?? null;
  const wanted = {
    purpose: await checkingMember('purpose', () => checkName('The purpose', given.purpose)),
    scopes: await checkingMember('scopes', () => checkScopes(given.scopes)),
    validDays: checkWhole('validDays', 'The days that a key works', given.validDays ?? null, {
      min: 1,
      max: MAX_VALID_DAYS,
    }),
    replacesKeyId,
    overlapHours: checkWhole('overlapHours', 'The hours that the replaced key works on', overlapHours, {
      min: 0,
      max: MAX_OVERLAP_HOURS,
    }),
  };
  if (replacesKeyId !== null) {
    await checkingMember('replacesKeyId', () => checkReplaced(database, wabaId, replacesKeyId));
  } else if (overlapHours !== null) {
    throw invalidValue('Without a key to replace there is no overlap.', 'overlapHours');
  }
  return wanted;
}

/** The note of a decision; null when there is none. Throws RequestError `invalid_value`. */
export async function checkNote(text: string): Promise<string | null> {
  const note = await checkingMember('note', () => checkDescription('The note', text));
  return note === '' ? null : note;
}

async function checkReplaced(database: Database, wabaId: string, keyId: string): Promise<void> {
  const key = await findApiKeyDetails(database, wabaId, checkRowId('The id of the key', keyId));
  if (key === null) throw new RequestError('unknown_key', `There is no API key ${keyId}.`);
  if (key.state === 'active') return;
  throw new RequestError('key_not_active', `API key ${keyId} is ${key.state}: there is nothing to replace.`);
}

function checkWhole(
  param: string,
  what: string,
  number: number | null,
  { min, max }: { min: number; max: number },
): number | null {
  if (number === null || (Number.isInteger(number) && number >= min && number <= max)) return number;
  throw invalidValue(`${what} must be a whole number from ${min} to ${max}.`, param);
}
