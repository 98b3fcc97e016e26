import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query, queryColumn, queryOne } from '../../platform/postgres/sql.ts';
import { meaningsOf, type OptOutWords, type WordMeanings } from './opt-out-words.ts';

/** Whose a phone number is. `removed`: an operator took it, or its WABA, away. `words`: of customers who stop or resume marketing. */
export type NumberOwner = { wabaId: string; tenantId: string; removed: boolean; words?: WordMeanings };

/** Which WABA and tenant each of these phone numbers belongs to; unknown numbers are absent. */
export async function findNumberOwners(
  trx: Database,
  phoneNumberIds: readonly string[],
): Promise<Map<string, NumberOwner>> {
  if (phoneNumberIds.length === 0) return new Map();
  const rows = await query<Omit<NumberOwner, 'words'> & OptOutWords & { phoneNumberId: string }>(
    trx,
    `select n.phone_number_id as "phoneNumberId", n.waba_id as "wabaId", w.tenant_id as "tenantId",
            n.detached or w.removed_at is not null as removed, w.opt_out_words as "optOutWords",
            w.opt_in_words as "optInWords"
       from phone_numbers n join wabas w using (waba_id) where n.phone_number_id = any (:phoneNumberIds::text[])`,
    { phoneNumberIds },
  );
  return new Map(
    rows.map(({ phoneNumberId, optOutWords, optInWords, ...owner }) => {
      const words = meaningsOf({ optOutWords, optInWords });
      return [phoneNumberId, words === null ? owner : { ...owner, words }];
    }),
  );
}

export async function findKnownWabas(trx: Transaction, wabaIds: readonly string[]): Promise<Set<string>> {
  const ids = await queryColumn<string>(
    trx,
    'select waba_id from wabas where waba_id = any (:wabaIds::text[]) and removed_at is null',
    { wabaIds },
  );
  return new Set(ids);
}

/** As `findNumberOwners`, for what belongs to no number; WABAs that no tenant has are absent. */
export async function findWabaOwners(
  trx: Transaction,
  wabaIds: readonly string[],
): Promise<Map<string, NumberOwner>> {
  if (wabaIds.length === 0) return new Map();
  const rows = await query<NumberOwner>(
    trx,
    `select waba_id as "wabaId", tenant_id as "tenantId", false as removed
       from wabas where waba_id = any (:wabaIds::text[]) and removed_at is null`,
    { wabaIds },
  );
  return new Map(rows.map((owner) => [owner.wabaId, owner]));
}

/** As `findWabaOwners`, by the digits of a phone number, which one WABA alone has. */
export async function findOwnersOfPhones(
  trx: Transaction,
  phones: readonly string[],
): Promise<Map<string, NumberOwner>> {
  if (phones.length === 0) return new Map();
  const rows = await query<NumberOwner & { phone: string }>(
    trx,
    `select g.phone, min(n.waba_id) as "wabaId", min(w.tenant_id) as "tenantId", false as removed
       from unnest(:phones::text[]) as g (phone)
       join phone_numbers n on regexp_replace(n.display_phone_number, '\\D', '', 'g') = g.phone
       join wabas w on w.waba_id = n.waba_id and w.removed_at is null
      where n.removed_at is null and not n.detached
      group by g.phone having count(distinct n.waba_id) = 1`,
    { phones },
  );
  return new Map(rows.map(({ phone, ...owner }) => [phone, owner]));
}

/** Which tenant has the WABA, or had it and its history is kept; null: no tenant. */
export async function wabaHolder(
  database: Database,
  wabaId: string,
): Promise<{ tenantId: string; removed: boolean } | null> {
  return await queryOne(
    database,
    'select tenant_id as "tenantId", removed_at is not null as removed from wabas where waba_id = :wabaId',
    { wabaId },
  );
}
