import type { UsageGroup, UsageRow } from '../../features/messages/usage-days.ts';

export const USAGE_COUNTS = ['sent', 'delivered', 'read', 'failed', 'billable', 'received'] as const;

const ALL_GROUPS: readonly UsageGroup[] = ['category', 'pricingType', 'country', 'phoneNumberId'];

type FileRow = Omit<UsageRow, 'tenantId'> & { userId?: number; externalId?: string | null };

/** Counts as CSV. No value has a comma or a quote: they are numbers, ids and words of upstream. */
export function usageFile(
  rows: readonly FileRow[],
  {
    groups = ALL_GROUPS,
    columns = [],
  }: { groups?: readonly UsageGroup[]; columns?: readonly ('userId' | 'externalId')[] } = {},
): string {
  const names = [...columns, ...groups, ...USAGE_COUNTS];
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
