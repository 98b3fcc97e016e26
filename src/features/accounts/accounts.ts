import { type Audited, recordBy } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryOne, queryOnly } from '../../platform/postgres/sql.ts';
import { checkName, checkRowId, checkUpstreamId, RequestError } from '../../platform/request-input.ts';
import { setNewTenantQuotas } from './new-tenant-quotas.ts';

/** Adds a tenant and returns its id, the `userId` of the API. */
export async function insertTenant(database: Database, businessName: string): Promise<string> {
  const text = 'insert into tenants (business_name) values (:businessName) returning id';
  const row = await queryOnly<{ id: string }>(database, text, { businessName });
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
            token_refused_at = case when excluded.access_token_sealed is null then wabas.token_refused_at end,
            token_problem = case when excluded.access_token_sealed is null then wabas.token_problem end,
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

export async function findWaba(database: Database, wabaId: string): Promise<WabaAccount | null> {
  return await queryOne<WabaAccount>(
    database,
    `select w.tenant_id as "tenantId", t.business_name as "businessName", w.access_token_sealed as "accessTokenSealed"
       from wabas w join tenants t on t.id = w.tenant_id
      where w.waba_id = :wabaId and w.removed_at is null`,
    { wabaId },
  );
}

/** The numbers of a WABA, without those that it does not have any more. */
export async function listPhoneNumbers(database: Database, wabaId: string): Promise<PhoneNumber[]> {
  return await query<PhoneNumber>(
    database,
    `select phone_number_id as "phoneNumberId", display_phone_number as "displayPhoneNumber",
            verified_name as "verifiedName", quality_rating as "qualityRating"
       from phone_numbers where waba_id = :wabaId and removed_at is null order by phone_number_id`,
    { wabaId },
  );
}

export const NO_SUCH_NUMBER = 'The WABA has no such phone number.';

/** Throws RequestError `unknown_phone_number`. */
export async function requireNumber(
  database: Database,
  wabaId: string,
  phoneNumberId: string,
): Promise<void> {
  const numbers = await listPhoneNumbers(database, wabaId);
  if (numbers.some((one) => one.phoneNumberId === phoneNumberId)) return;
  throw new RequestError('unknown_phone_number', NO_SUCH_NUMBER, 'phoneNumberId');
}

/** Who a WABA belongs to and its numbers; null when there is none such. One statement: it is asked often. */
export async function findAccountIdentity(
  database: Database,
  wabaId: string,
): Promise<{ businessName: string; phoneNumbers: PhoneNumber[] } | null> {
  const rows = await query<
    { businessName: string } & { [Name in keyof PhoneNumber]: PhoneNumber[Name] | null }
  >(
    database,
    `select t.business_name as "businessName", n.phone_number_id as "phoneNumberId",
            n.display_phone_number as "displayPhoneNumber", n.verified_name as "verifiedName",
            n.quality_rating as "qualityRating"
       from wabas w join tenants t on t.id = w.tenant_id left join phone_numbers n on n.waba_id = w.waba_id
                                                      and n.removed_at is null
      where w.waba_id = :wabaId order by n.phone_number_id`,
    { wabaId },
  );
  const [first] = rows;
  if (first === undefined) return null;
  const phoneNumbers = rows
    .map(({ businessName, ...number }) => number)
    .filter((number): number is PhoneNumber => number.phoneNumberId !== null);
  return { businessName: first.businessName, phoneNumbers };
}

export type TenantSummary = { userId: string; businessName: string; wabaIds: string[]; createdAt: Date };

export async function listTenants(database: Database): Promise<TenantSummary[]> {
  return await query<TenantSummary>(
    database,
    `select t.id as "userId", t.business_name as "businessName", t.created_at as "createdAt",
            array(select waba_id from wabas where tenant_id = t.id and removed_at is null order by waba_id) as "wabaIds"
       from tenants t where t.removed_at is null order by t.id`,
  );
}

/** By id, of those that are not removed. */
export async function businessNames(
  database: Database,
  tenantIds: readonly string[],
): Promise<Map<string, string>> {
  const rows = await query<{ id: string; name: string }>(
    database,
    'select id, business_name as name from tenants where id = any (:tenantIds::bigint[]) and removed_at is null',
    { tenantIds },
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}

export async function findTenant(
  database: Database,
  tenantId: string,
): Promise<{ businessName: string } | null> {
  const text =
    'select business_name as "businessName" from tenants where id = :tenantId and removed_at is null';
  return await queryOne<{ businessName: string }>(database, text, { tenantId });
}

type WabaSummary = {
  wabaId: string;
  userId: string;
  businessName: string;
  hasAccessToken: boolean;
  createdAt: Date;
};

export async function listWabas(database: Database): Promise<WabaSummary[]> {
  return await query<WabaSummary>(
    database,
    `select w.waba_id as "wabaId", w.tenant_id as "userId", t.business_name as "businessName",
            w.access_token_sealed is not null as "hasAccessToken", w.created_at as "createdAt"
       from wabas w join tenants t on t.id = w.tenant_id
      where w.removed_at is null order by w.tenant_id, w.waba_id`,
  );
}

/** All of a tenant, or those `among` some. */
export async function listTenantWabas(
  database: Database,
  tenantId: string,
  among: readonly string[] | null = null,
): Promise<{ wabaId: string; numbers: string[] }[]> {
  return await query(
    database,
    `select w.waba_id as "wabaId",
            array(select display_phone_number from phone_numbers n where n.waba_id = w.waba_id and n.removed_at is null
                   order by phone_number_id) as numbers
       from wabas w where w.tenant_id = :tenantId and w.removed_at is null
            and (cast(:among as text[]) is null or w.waba_id = any (cast(:among as text[]))) order by w.waba_id`,
    { tenantId, among },
  );
}

/** The WABA with this id. Throws RequestError `invalid_value` or `unknown_waba`. */
export async function knownWaba(database: Database, wabaId: string): Promise<WabaAccount> {
  const waba = await findWaba(database, checkUpstreamId('The WABA id', wabaId));
  if (waba === null) throw new RequestError('unknown_waba', `There is no WABA ${wabaId}.`);
  return waba;
}

/** The tenant with this userId. Throws RequestError `invalid_value` or `unknown_tenant`. */
export async function knownTenant(database: Database, userId: string): Promise<{ businessName: string }> {
  const tenant = await findTenant(database, checkRowId('The userId of the tenant', userId));
  if (tenant === null) throw new RequestError('unknown_tenant', `There is no tenant with userId ${userId}.`);
  return tenant;
}

/** Adds a tenant, with quotas. Two may have one name: only the userId tells them apart. Throws RequestError `invalid_value`. */
export async function createTenant(
  { database, actor }: { database: Database } & Audited,
  name: string,
): Promise<{ userId: string; businessName: string }> {
  const businessName = checkName('The business name', name);
  return await database.transaction(async (trx) => {
    const userId = await insertTenant(trx, businessName);
    await setNewTenantQuotas(trx, userId);
    const tenant = { tenantId: userId, wabaId: null, target: `tenant ${userId}`, detail: { businessName } };
    await recordBy(trx, actor, { ...tenant, action: 'tenant.created' });
    return { userId, businessName };
  });
}

/** Gives a tenant another name. Throws RequestError: `invalid_value`, `unknown_tenant`. */
export async function renameTenant(
  { database, actor }: { database: Database } & Audited,
  userId: string,
  name: string,
): Promise<{ userId: string; businessName: string }> {
  const businessName = checkName('The business name', name);
  const before = await knownTenant(database, userId);
  await database.transaction(async (trx) => {
    const text =
      'update tenants set business_name = :businessName, updated_at = now() where id = :userId and removed_at is null';
    await execute(trx, text, { businessName, userId });
    const detail = { from: before.businessName, to: businessName };
    const tenant = { tenantId: userId, wabaId: null, target: `tenant ${userId}`, detail };
    await recordBy(trx, actor, { ...tenant, action: 'tenant.renamed' });
  });
  return { userId, businessName };
}

/** Takes a WABA out of use: its row stays without secrets. */
export async function closeWabaRow(trx: Transaction, wabaId: string): Promise<void> {
  await execute(
    trx,
    `update wabas set removed_at = now(), access_token_sealed = null, numbers_problem = null,
            operations_url = null, operations_secret_sealed = null
      where waba_id = :wabaId`,
    { wabaId },
  );
  await execute(trx, 'update phone_numbers set pin_sealed = null where waba_id = :wabaId', { wabaId });
}

/** `secretSealed` null: it stays as it is stored, where it may have been encrypted again since it was read. A URL of null leaves none. */
export async function saveOperationsUrl(
  trx: Transaction,
  wabaId: string,
  saved: { url: string | null; secretSealed: string | null; keyId: string | null },
): Promise<void> {
  await execute(
    trx,
    `update wabas
        set operations_url = :url,
            operations_secret_sealed = case when cast(:url as text) is not null
              then coalesce(:secretSealed, operations_secret_sealed) end,
            operations_url_set_at = case when operations_url is distinct from :url then now() else operations_url_set_at end,
            operations_url_set_by_key = case when operations_url is distinct from :url then cast(:keyId as bigint)
              else operations_url_set_by_key end
      where waba_id = :wabaId`,
    { wabaId, ...saved },
  );
}

export async function saveWebhookTargets(
  trx: Transaction,
  wabaId: string,
  { allow, deny }: { allow: readonly string[]; deny: readonly string[] },
): Promise<void> {
  const text = 'update wabas set webhook_allow = :allow, webhook_deny = :deny where waba_id = :wabaId';
  await execute(trx, text, { wabaId, allow, deny });
}

export async function deleteWabaRows(trx: Transaction, wabaId: string): Promise<void> {
  await execute(trx, 'delete from message_templates where waba_id = :wabaId', { wabaId });
  await execute(trx, 'delete from phone_numbers where waba_id = :wabaId', { wabaId });
  await execute(trx, 'delete from wabas where waba_id = :wabaId', { wabaId });
}

/** Takes a tenant out of use: its row stays, and the operator's program may give its id to another. */
export async function closeTenantRow(trx: Transaction, tenantId: string): Promise<void> {
  const text = `update tenants set removed_at = now(), external_id = null, metadata = '{}' where id = :tenantId`;
  await execute(trx, text, { tenantId });
}

export async function deleteTenantRow(trx: Transaction, tenantId: string): Promise<void> {
  await execute(trx, 'delete from tenants where id = :tenantId', { tenantId });
}
