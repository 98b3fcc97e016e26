import type { Database, Transaction } from '../platform/postgres/database.ts';
import { execute, query } from '../platform/postgres/sql.ts';

/** Whose a phone number is. `removed`: an operator took it, or its WABA, away. */
export type NumberOwner = { wabaId: string; tenantId: string; removed: boolean };

/** Which WABA and tenant each of these phone numbers belongs to; unknown numbers are absent. */
export async function findNumberOwners(
  trx: Database,
  phoneNumberIds: readonly string[],
): Promise<Map<string, NumberOwner>> {
  if (phoneNumberIds.length === 0) return new Map();
  const rows = await query<NumberOwner & { phoneNumberId: string }>(
    trx,
    `select n.phone_number_id as "phoneNumberId", n.waba_id as "wabaId", w.tenant_id as "tenantId",
            n.detached or w.removed_at is not null as removed
       from phone_numbers n join wabas w using (waba_id) where n.phone_number_id = any (?::text[])`,
    [phoneNumberIds],
  );
  return new Map(rows.map(({ phoneNumberId, ...owner }) => [phoneNumberId, owner]));
}

/** Those of these WABAs that a tenant has. */
export async function findKnownWabas(trx: Transaction, wabaIds: readonly string[]): Promise<Set<string>> {
  const rows = await query<{ id: string }>(
    trx,
    'select waba_id as id from wabas where waba_id = any (?::text[]) and removed_at is null',
    [wabaIds],
  );
  return new Set(rows.map(({ id }) => id));
}

/** Adds a tenant and returns its id, the `userId` of the API. */
export async function insertTenant(database: Database, businessName: string): Promise<string> {
  const [row] = await query<{ id: string }>(
    database,
    'insert into tenants (business_name) values (?) returning id',
    [businessName],
  );
  if (row === undefined) throw new Error('the tenant was not stored');
  return row.id;
}

export type PhoneNumber = {
  phoneNumberId: string;
  displayPhoneNumber: string;
  verifiedName: string;
  qualityRating: string | null;
};

/** Adds a WABA or gives a known one a new access token; a WABA stays with its tenant. False: it is another's. */
export async function saveWaba(
  database: Database,
  tenantId: string,
  waba: { wabaId: string; accessTokenSealed: string | null },
): Promise<boolean> {
  const changed = await execute(
    database,
    `insert into wabas (waba_id, tenant_id, access_token_sealed) values (:wabaId, :tenantId, :accessTokenSealed)
     on conflict (waba_id) do update
        set access_token_sealed = coalesce(excluded.access_token_sealed, wabas.access_token_sealed),
            removed_at = null
      where wabas.tenant_id = excluded.tenant_id`,
    { tenantId, ...waba },
  );
  return changed === 1;
}

/** Adds a number to a WABA or brings its description up to date. False: it belongs to another WABA. */
export async function savePhoneNumber(
  database: Database,
  wabaId: string,
  number: PhoneNumber,
): Promise<boolean> {
  const changed = await execute(
    database,
    `insert into phone_numbers (phone_number_id, waba_id, display_phone_number, verified_name, quality_rating)
     values (:phoneNumberId, :wabaId, :displayPhoneNumber, :verifiedName, :qualityRating)
     on conflict (phone_number_id) do update
        set display_phone_number = excluded.display_phone_number, verified_name = excluded.verified_name,
            quality_rating = excluded.quality_rating, removed_at = null, detached = false
      where phone_numbers.waba_id = excluded.waba_id`,
    { wabaId, ...number },
  );
  return changed === 1;
}

export type WabaAccount = { tenantId: string; businessName: string; accessTokenSealed: string | null };

/** The tenant behind a WABA; null when there is none such. */
export async function findWaba(database: Database, wabaId: string): Promise<WabaAccount | null> {
  const [row] = await query<WabaAccount>(
    database,
    `select w.tenant_id as "tenantId", t.business_name as "businessName", w.access_token_sealed as "accessTokenSealed"
       from wabas w join tenants t on t.id = w.tenant_id
      where w.waba_id = ? and w.removed_at is null`,
    [wabaId],
  );
  return row ?? null;
}

/** The numbers of a WABA, without those that it does not have any more. */
export async function listPhoneNumbers(database: Database, wabaId: string): Promise<PhoneNumber[]> {
  return await query<PhoneNumber>(
    database,
    `select phone_number_id as "phoneNumberId", display_phone_number as "displayPhoneNumber",
            verified_name as "verifiedName", quality_rating as "qualityRating"
       from phone_numbers where waba_id = ? and removed_at is null order by phone_number_id`,
    [wabaId],
  );
}
