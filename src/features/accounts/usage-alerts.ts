import { type Audited, recordBy } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, queryValue } from '../../platform/postgres/sql.ts';
import { RequestError } from '../../platform/request-input.ts';

/** What is counted by day, as the columns of usage_days are named. */
export const USAGE_METRICS = ['sent', 'delivered', 'read', 'failed', 'billable', 'received'] as const;

type UsageMetric = (typeof USAGE_METRICS)[number];

type UsagePeriod = 'day' | 'month';

/** Operators are alerted when a count of a tenant reaches the threshold within a UTC day or month. */
export type UsageAlert = { metric: UsageMetric; period: UsagePeriod; threshold: number };

/** Sets the one alert of a metric and a period; a threshold of null removes it. Returns all of the tenant. Throws RequestError `unknown_tenant`. */
export async function setUsageAlert(
  { database, actor }: { database: Database } & Audited,
  userId: string,
  { metric, period, threshold }: Omit<UsageAlert, 'threshold'> & { threshold: number | null },
): Promise<UsageAlert[]> {
  const text =
    'select usage_alerts as alerts from tenants where id = :userId and removed_at is null for no key update';
  const before = await queryValue<UsageAlert[]>(database, text, { userId });
  if (before === null) throw new RequestError('unknown_tenant', 'There is no such tenant.');
  const isThis = (one: UsageAlert) => one.metric === metric && one.period === period;
  if ((before.find(isThis)?.threshold ?? null) === threshold) return before;
  const alerts = before.filter((one) => !isThis(one));
  if (threshold !== null) alerts.push({ metric, period, threshold });
  await execute(
    database,
    'update tenants set usage_alerts = cast(:alerts as jsonb), updated_at = now() where id = :userId',
    { userId, alerts: JSON.stringify(alerts) },
  );
  await recordBy(database, actor, {
    tenantId: userId,
    wabaId: null,
    target: `tenant ${userId}`,
    action: 'tenant.usage_alert_set',
    detail: { metric, period, threshold },
  });
  return alerts;
}
