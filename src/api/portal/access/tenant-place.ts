import { listTenantWabas } from '../../../accounts/accounts.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import type { WabaInView } from '../navigation.ts';
import type { Viewer } from './viewer.ts';

/** The navigation of a page that is about no WABA: the pages of the tenant's only WABA, or the list of its WABAs. */
export type TenantPlace = { waba: WabaInView | null; wabaIds: string[] };

/** Of operators nothing: they are in no tenant. */
export async function tenantPlace(
  database: Database,
  { tenantId, places }: Viewer,
): Promise<TenantPlace | null> {
  if (tenantId === null) return null;
  const wabaIds = (await listTenantWabas(database, tenantId)).map(({ wabaId }) => wabaId);
  const [wabaId] = wabaIds;
  if (wabaId === undefined || wabaIds.length > 1) return { waba: null, wabaIds };
  const businessName = places.find((place) => place.tenantId === tenantId)?.businessName ?? '';
  return { waba: { wabaId, businessName }, wabaIds: [] };
}
