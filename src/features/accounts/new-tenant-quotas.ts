import type { Transaction } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';

const GIB = 1_073_741_824;

/** What a tenant may store and upload until an operator decides otherwise: one tenant must not fill the object store. */
const NEW_TENANT_QUOTAS = {
  storedBytesQuota: 100 * GIB,
  uploadFilesPerDay: 10_000,
  uploadBytesPerDay: 10 * GIB,
};

export async function setNewTenantQuotas(trx: Transaction, tenantId: string): Promise<void> {
  await execute(
    trx,
    `insert into tenant_policies (tenant_id, stored_bytes_quota, upload_files_per_day, upload_bytes_per_day)
     values (:tenantId, :storedBytesQuota, :uploadFilesPerDay, :uploadBytesPerDay)`,
    { tenantId, ...NEW_TENANT_QUOTAS },
  );
}
