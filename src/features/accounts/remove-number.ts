import { lockIntake } from '../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';
import { checkUpstreamId, RequestError } from '../../platform/request-input.ts';
import { knownWaba } from './accounts.ts';

/**
 * Takes a number away from its WABA, also when upstream goes on listing it: it leaves `/me`, cannot send, and what comes
 * for it is quarantined. Its history stays. Adding it by hand brings it back. Throws RequestError: `invalid_value`,
 * `unknown_waba`, `unknown_phone_number`.
 */
export async function removeNumber(
  { database, actor }: { database: Database } & Audited,
  wabaId: string,
  phoneNumberId: string,
): Promise<void> {
  await knownWaba(database, wabaId);
  checkUpstreamId('The phone number id', phoneNumberId);
  await database.transaction(async (trx) => {
    await lockIntake(trx, shardOf(wabaId));
    // Upstream's list does not bring the number back; its row stays, with its history.
    const detached = await execute(
      trx,
      `update phone_numbers set detached = true, removed_at = coalesce(removed_at, now())
        where phone_number_id = :phoneNumberId and waba_id = :wabaId and not detached`,
      { phoneNumberId, wabaId },
    );
    if (detached === 0) {
      throw new RequestError('unknown_phone_number', `WABA ${wabaId} has no phone number ${phoneNumberId}.`);
    }
    const about = { wabaId, target: `WABA ${wabaId}`, detail: { phoneNumberId } };
    await recordChange(trx, actor, { ...about, action: 'waba.number_removed' });
  });
}
