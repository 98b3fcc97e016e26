import type { Database } from '../platform/postgres/database.ts';
import { checkRowId, checkUpstreamId, RequestError } from '../platform/request-input.ts';
import { findTenant } from './account-list.ts';
import { findWaba, type WabaAccount } from './accounts.ts';

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
