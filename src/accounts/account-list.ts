import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';

export type TenantSummary = { userId: string; businessName: string; wabaIds: string[]; createdAt: Date };

/** All tenants, for operators. */
export async function listTenants(database: Database): Promise<TenantSummary[]> {
  return await query<TenantSummary>(
    database,
    `select t.id as "userId", t.business_name as "businessName", t.created_at as "createdAt",
            array(select waba_id from wabas where tenant_id = t.id and removed_at is null order by waba_id) as "wabaIds"
       from tenants t where t.removed_at is null order by t.id`,
  );
}

/** The tenant with this id; null when there is none such. */
export async function findTenant(
  database: Database,
  tenantId: string,
): Promise<{ businessName: string } | null> {
  const [row] = await query<{ businessName: string }>(
    database,
    'select business_name as "businessName" from tenants where id = ? and removed_at is null',
    [tenantId],
  );
  return row ?? null;
}

export type WabaSummary = {
  wabaId: string;
  userId: string;
  businessName: string;
  hasAccessToken: boolean;
  createdAt: Date;
};

/** All WABAs with their tenants, for operators. */
export async function listWabas(database: Database): Promise<WabaSummary[]> {
  return await query<WabaSummary>(
    database,
    `select w.waba_id as "wabaId", w.tenant_id as "userId", t.business_name as "businessName",
            w.access_token_sealed is not null as "hasAccessToken", w.created_at as "createdAt"
       from wabas w join tenants t on t.id = w.tenant_id
      where w.removed_at is null order by w.tenant_id, w.waba_id`,
  );
}

/** The WABAs of one tenant with their numbers as people write them. */
export async function listTenantWabas(
  database: Database,
  tenantId: string,
): Promise<{ wabaId: string; numbers: string[] }[]> {
  return await query(
    database,
    `select w.waba_id as "wabaId",
            array(select display_phone_number from phone_numbers n where n.waba_id = w.waba_id and n.removed_at is null
                   order by phone_number_id) as numbers
       from wabas w where w.tenant_id = ? and w.removed_at is null order by w.waba_id`,
    [tenantId],
  );
}
