import { type Audited, recordBy } from '../platform/audit/audit.ts';
import type { Database } from '../platform/postgres/database.ts';
import { checkName } from '../platform/request-input.ts';
import { insertTenant } from './accounts.ts';

/** Adds a tenant. Two may have one name: only the userId tells them apart. Throws RequestError `invalid_value`. */
export async function createTenant(
  { database, actor }: { database: Database } & Audited,
  name: string,
): Promise<{ userId: string; businessName: string }> {
  const businessName = checkName('The business name', name);
  return await database.transaction(async (trx) => {
    const userId = await insertTenant(trx, businessName);
    const tenant = { tenantId: userId, wabaId: null, target: `tenant ${userId}`, detail: { businessName } };
    await recordBy(trx, actor, { ...tenant, action: 'tenant.created' });
    return { userId, businessName };
  });
}
