import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';

/** A number of a business, with whose it is. */
export type BusinessNumber = {
  phoneNumberId: string;
  displayPhoneNumber: string;
  verifiedName: string;
  wabaId: string;
  businessName: string;
};

/** A page has room for so many to choose from. */
const MAX_LISTED = 200;

/** The numbers of a tenant; of all tenants when it is null, for operators. */
export async function listBusinessNumbers(
  database: Database,
  tenantId: string | null,
): Promise<BusinessNumber[]> {
  return await query<BusinessNumber>(
    database,
    `select n.phone_number_id as "phoneNumberId", n.display_phone_number as "displayPhoneNumber",
            n.verified_name as "verifiedName", w.waba_id as "wabaId", t.business_name as "businessName"
       from phone_numbers n join wabas w using (waba_id) join tenants t on t.id = w.tenant_id
      where n.removed_at is null and w.removed_at is null ${tenantId === null ? '' : 'and w.tenant_id = :tenantId'}
      order by w.tenant_id, n.phone_number_id limit ${MAX_LISTED}`,
    { tenantId },
  );
}
