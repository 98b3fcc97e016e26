import { insertTenant } from '../database/accounts.ts';
import type { Database } from '../database/database.ts';
import { checkName } from './account-input.ts';

/** Adds a tenant. Two may have one name: only the userId tells them apart. Throws AccountError `invalid_value`. */
export async function createTenant(
  { database }: { database: Database },
  name: string,
): Promise<{ userId: string; businessName: string }> {
  const businessName = checkName('The business name', name);
  return { userId: await insertTenant(database, businessName), businessName };
}
