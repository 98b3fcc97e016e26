import { lockIntake } from '../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import { releaseWaitingBodies } from '../../engine/inbox/waiting-bodies.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import {
  checkAccessToken,
  checkDescription,
  checkUpstreamId,
  RequestError,
} from '../../platform/request-input.ts';
import { ACCESS_TOKEN } from './access-tokens.ts';
import {
  findWaba,
  knownTenant,
  knownWaba,
  listPhoneNumbers,
  type PhoneNumber,
  savePhoneNumber,
  saveWaba,
} from './accounts.ts';
import { askForNumbersAgain } from './followed-numbers.ts';
import { findNumberOwners, wabaHolder } from './number-owners.ts';

/** Members that are left out keep the value they have. */
export type GivenPhoneNumber = { phoneNumberId: string } & Partial<Omit<PhoneNumber, 'phoneNumberId'>>;

export type SavedWaba = {
  wabaId: string;
  userId: string;
  businessName: string;
  hasAccessToken: boolean;
  phoneNumbers: PhoneNumber[];
};

/**
 * Adds a WABA with its numbers and its upstream access token to a tenant, or brings it up to date; what is not given
 * stays. With a token, its numbers and templates are looked up. All or nothing. Throws RequestError: `invalid_value`, `unknown_tenant`, `waba_taken`, `phone_number_taken`.
 */
export async function addWaba(
  tools: SealedDatabase & Audited,
  userId: string,
  waba: { wabaId: string; phoneNumbers: readonly GivenPhoneNumber[]; accessToken: string | null },
): Promise<SavedWaba> {
  const { database } = tools;
  const { businessName } = await knownTenant(database, userId);
  const wabaId = checkUpstreamId('The WABA id', waba.wabaId);
  const numbers = waba.phoneNumbers.map(checkPhoneNumber);
  const accessTokenSealed = waba.accessToken === null ? null : sealToken(tools, wabaId, waba.accessToken);
  return await database.transaction(async (trx) => {
    await lockIntake(trx, shardOf(wabaId));
    if (!(await saveWaba(trx, userId, { wabaId, accessTokenSealed }))) {
      throw new RequestError('waba_taken', await takenText(trx, wabaId));
    }
    await saveNumbers(trx, wabaId, numbers);
    await releaseWaitingBodies(trx, wabaId);
    if (accessTokenSealed !== null) await askForNumbersAgain(trx, [wabaId], { atOnce: true });
    const saved = await findWaba(trx, wabaId);
    const hasAccessToken = (saved?.accessTokenSealed ?? null) !== null;
    const phoneNumbers = await listPhoneNumbers(trx, wabaId);
    const detail = {
      phoneNumberIds: numbers.map(({ phoneNumberId }) => phoneNumberId).join(', '),
      accessToken: accessTokenSealed === null ? 'kept' : 'set',
    };
    await recordChange(trx, tools.actor, { wabaId, action: 'waba.saved', target: `WABA ${wabaId}`, detail });
    return { wabaId, userId, businessName, hasAccessToken, phoneNumbers };
  });
}

/** Gives a WABA a new upstream access token, with which its numbers are looked up. Throws RequestError: `invalid_value`, `unknown_waba`. */
export async function setAccessToken(
  tools: SealedDatabase & Audited,
  wabaId: string,
  accessToken: string,
): Promise<void> {
  const { tenantId } = await knownWaba(tools.database, wabaId);
  const accessTokenSealed = sealToken(tools, wabaId, accessToken);
  await tools.database.transaction(async (trx) => {
    await saveWaba(trx, tenantId, { wabaId, accessTokenSealed });
    await askForNumbersAgain(trx, [wabaId], { atOnce: true });
    const change = { wabaId, action: 'waba.access_token_set', target: `WABA ${wabaId}` };
    await recordChange(trx, tools.actor, change);
  });
}

async function takenText(trx: Transaction, wabaId: string): Promise<string> {
  return (await wabaHolder(trx, wabaId))?.removed
    ? `WABA ${wabaId} was removed from another tenant, whose history with it is kept: only that one can have it again.`
    : `WABA ${wabaId} belongs to another tenant and stays with it.`;
}

function sealToken({ secretBox }: SealedDatabase, wabaId: string, accessToken: string): string {
  return secretBox.seal(checkAccessToken(accessToken), ACCESS_TOKEN.place(wabaId));
}

function checkPhoneNumber(number: GivenPhoneNumber): GivenPhoneNumber {
  checkUpstreamId('A phone number id', number.phoneNumberId);
  for (const text of [number.displayPhoneNumber, number.verifiedName, number.qualityRating]) {
    checkDescription(`The description of phone number ${number.phoneNumberId}`, text ?? '');
  }
  return number;
}

async function saveNumbers(
  trx: Transaction,
  wabaId: string,
  numbers: readonly GivenPhoneNumber[],
): Promise<void> {
  const owners = await findNumberOwners(
    trx,
    numbers.map((number) => number.phoneNumberId),
  );
  const known = new Map(
    (await listPhoneNumbers(trx, wabaId)).map((number) => [number.phoneNumberId, number]),
  );
  for (const number of numbers) {
    const { phoneNumberId } = number;
    const {
      displayPhoneNumber = '',
      verifiedName = '',
      qualityRating = null,
    } = { ...known.get(phoneNumberId), ...number };
    const saved = await savePhoneNumber(trx, wabaId, {
      phoneNumberId,
      displayPhoneNumber: displayPhoneNumber.trim(),
      verifiedName: verifiedName.trim(),
      qualityRating,
    });
    if (saved) continue;
    const owner = owners.get(phoneNumberId)?.wabaId ?? 'another';
    throw new RequestError('phone_number_taken', `Phone number ${phoneNumberId} belongs to WABA ${owner}.`);
  }
}
