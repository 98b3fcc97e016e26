import { type Audited, recordAudit } from '../platform/audit/audit.ts';
import type { Database, Transaction } from '../platform/postgres/database.ts';
import { execute } from '../platform/postgres/sql.ts';
import { checkName } from '../platform/request-input.ts';
import { knownTenant } from './accounts.ts';

/** Gives a tenant another name. Throws RequestError: `invalid_value`, `unknown_tenant`. */
export async function renameTenant(
  { database, actor: { name: actor, ...request } }: { database: Database } & Audited,
  userId: string,
  name: string,
): Promise<{ userId: string; businessName: string }> {
  const businessName = checkName('The business name', name);
  const before = await knownTenant(database, userId);
  await database.transaction(async (trx) => {
    await renameTenantRow(trx, userId, businessName);
    const detail = { from: before.businessName, to: businessName };
    const tenant = { tenantId: userId, wabaId: null, target: `tenant ${userId}`, detail };
    await recordAudit(trx, { ...tenant, ...request, actor, action: 'tenant.renamed' });
  });
  return { userId, businessName };
}

async function renameTenantRow(trx: Transaction, tenantId: string, name: string): Promise<boolean> {
  const renamed = 'update tenants set business_name = ? where id = ? and removed_at is null';
  return (await execute(trx, renamed, [name, tenantId])) === 1;
}
