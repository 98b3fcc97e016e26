import { listTenantWabas } from '../../../features/accounts/accounts.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import type { TenantPlace, Viewer } from './viewer.ts';

/** Where a page is that is about no WABA. Of operators nothing: they are in no tenant. */
export async function tenantPlace(
  database: Database,
  { tenantId, places, link }: Viewer,
): Promise<TenantPlace | null> {
  if (tenantId === null) return null;
  const wabaIds = (await listTenantWabas(database, tenantId, link?.wabaIds)).map(({ wabaId }) => wabaId);
  const [wabaId] = wabaIds;
  if (wabaId === undefined || wabaIds.length > 1) return { waba: null, wabaIds };
  const businessName = places.find((place) => place.tenantId === tenantId)?.businessName ?? '';
  return { waba: { wabaId, businessName }, wabaIds: [] };
}
