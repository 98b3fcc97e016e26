import { namesOfTenants } from '../../features/accounts/external-tenants.ts';
import { USAGE_METRICS } from '../../features/accounts/usage-alerts.ts';
import type { UsageGroup, UsageRow } from '../../features/messages/usage-days.ts';
import type { Database } from '../../platform/postgres/database.ts';

const ALL_GROUPS: readonly UsageGroup[] = ['category', 'pricingType', 'country', 'phoneNumberId'];

type OfTenant = { userId?: number; externalId?: string | null };

type FileRow = Omit<UsageRow, 'tenantId'> & OfTenant;

/** Names the tenant of each row as programs of operators do; rows of no tenant stay as they are. */
export async function withTenantNames<Row extends { tenantId?: string }>(
  database: Database,
  rows: readonly Row[],
): Promise<(Omit<Row, 'tenantId'> & OfTenant)[]> {
  const names = await namesOfTenants(database, [...new Set(rows.flatMap((row) => row.tenantId ?? []))]);
  return rows.map(({ tenantId: id, ...row }) =>
    id === undefined ? row : { ...row, userId: Number(id), externalId: names.get(id) ?? null },
  );
}

/** Counts as CSV. No value has a comma or a quote: they are numbers, ids and words of upstream. */
export function usageFile(
  rows: readonly FileRow[],
  {
    groups = ALL_GROUPS,
    columns = [],
  }: { groups?: readonly UsageGroup[]; columns?: readonly ('userId' | 'externalId')[] } = {},
): string {
  const names = [...columns, ...groups, ...USAGE_METRICS];
  const head = ['day', ...names, 'costAmount', 'costCurrency', 'costSource'];
  const lines = rows.map((row) =>
    [
      row.day,
      ...names.map((name) => row[name] ?? ''),
      row.cost?.amount ?? '',
      row.cost?.currency ?? '',
      row.cost === null ? '' : 'upstream',
    ].join(),
  );
  return [head.join(), ...lines, ''].join('\r\n');
}
