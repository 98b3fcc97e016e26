import type { Database, Transaction } from './database.ts';
import { execute, query } from './sql.ts';

/** Which WABA and tenant each of these phone numbers belongs to; unknown numbers are absent. */
export async function findNumberOwners(
  trx: Transaction,
  phoneNumberIds: readonly string[],
): Promise<Map<string, { wabaId: string; tenantId: string }>> {
  const rows = await query<{ phone_number_id: string; waba_id: string; tenant_id: string }>(
    trx,
    `select n.phone_number_id, n.waba_id, w.tenant_id from phone_numbers n join wabas w using (waba_id)
      where n.phone_number_id = any (?::text[])`,
    [phoneNumberIds],
  );
  return new Map(rows.map((row) => [row.phone_number_id, { wabaId: row.waba_id, tenantId: row.tenant_id }]));
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
        set access_token_sealed = coalesce(excluded.access_token_sealed, wabas.access_token_sealed)
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
            quality_rating = excluded.quality_rating
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
       from wabas w join tenants t on t.id = w.tenant_id where w.waba_id = ?`,
    [wabaId],
  );
  return row ?? null;
}

export async function listPhoneNumbers(database: Database, wabaId: string): Promise<PhoneNumber[]> {
  return await query<PhoneNumber>(
    database,
    `select phone_number_id as "phoneNumberId", display_phone_number as "displayPhoneNumber",
            verified_name as "verifiedName", quality_rating as "qualityRating"
       from phone_numbers where waba_id = ? order by phone_number_id`,
    [wabaId],
  );
}
