import { type Static, Type } from 'typebox';
import { setUsageAlert } from '../../features/accounts/usage-alerts.ts';
import { USAGE_GROUPS } from '../../features/messages/usage-days.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { groupsOf, TenantUsage, USAGE_PERIOD, usageOf } from '../accounts/message-usage.ts';
import { usageFile, withTenantNames } from '../accounts/usage-file.ts';
import { closed, named, optionalParameter, text } from '../external/schema-kit.ts';
import { inTenant } from './in-tenant.ts';
import { platformOperation } from './platform-operation.ts';
import {
  OF_TENANT,
  TENANT_PATH,
  tenantFilter,
  tenantIdOf,
  UsageAlertInput,
  UsageAlerts,
} from './platform-schemas.ts';

const GROUPS = ['tenant', ...Object.keys(USAGE_GROUPS)].join('|');

const TenantUsageQuery = closed({
  ...USAGE_PERIOD,
  groupBy: optionalParameter(
    Type.String({ pattern: `^(?:${GROUPS})(?:,(?:${GROUPS})){0,4}$` }),
    'Any of `tenant`, `phoneNumberId`, `category`, `pricingType`, `country`, with commas between them.',
    'tenant',
  ),
  tenant: tenantFilter('messages'),
});

/** Throws RequestError: `invalid_value`, `unknown_tenant`. */
async function tenantUsage(database: Database, { tenant, ...query }: Static<typeof TenantUsageQuery>) {
  const tenantId = await tenantIdOf(database, tenant);
  const byTenant = query.groupBy?.split(',').includes('tenant') ?? false;
  const { rows, ...usage } = await usageOf(database, { tenantId, byTenant }, query);
  return { ...usage, rows: await withTenantNames(database, rows), byTenant };
}

const ASKED = {
  method: 'GET',
  scope: 'usage',
  tag: 'Tenants',
  errors: ['unknown_tenant'],
  query: TenantUsageQuery,
} as const;

const getTenantUsage = platformOperation({
  ...ASKED,
  id: 'getTenantUsage',
  path: '/api/platform/usage/messages',
  summary: 'Count messages of tenants by day',
  description:
    'As `GET /api/external/usage/messages`, for all tenants or for one; with `groupBy=tenant` each tenant apart, by `userId` and `externalId`. ' +
    'Amounts of several currencies have no sum: `cost` is null then.',
  answers: { 200: { schema: TenantUsage, description: 'The counts, by day and group.' } },
  run: async ({ tools }, query) => await tenantUsage(tools.database, query),
  json: ({ byTenant: _, ...usage }) => usage,
  example: 'get-tenant-usage --group-by tenant --granularity month',
});

const getTenantUsageFile = platformOperation({
  ...ASKED,
  id: 'getTenantUsageFile',
  path: '/api/platform/usage/messages.csv',
  summary: 'Count messages of tenants by day, as a file',
  description: 'The rows of `GET /api/platform/usage/messages` as CSV, with a line of names first.',
  answers: {
    200: {
      schema: text(
        'day,userId,externalId,sent,delivered,read,failed,billable,received,costAmount,costCurrency,costSource',
      ),
      description: 'The file.',
      type: 'text/csv',
    },
  },
  run: async ({ tools }, query) => ({ query, ...(await tenantUsage(tools.database, query)) }),
  json: ({ query, byTenant, rows }) =>
    usageFile(rows, {
      groups: groupsOf(query.groupBy),
      columns: byTenant ? ['userId', 'externalId'] : [],
    }),
  example: null,
});

const putUsageAlert = platformOperation({
  id: 'putUsageAlert',
  method: 'PUT',
  path: `${TENANT_PATH}/usage-alerts`,
  scope: 'tenants',
  summary: 'Set an alert on a count of a tenant',
  description:
    'When the count of a UTC day or month reaches the threshold, operators get the alert `quota_nearly_used`, and the feed of operation events has it. ' +
    'It ends with the day or month. A tenant has one for each metric and period; a `threshold` of null removes it. Nothing is refused because of it.',
  tag: 'Tenants',
  errors: ['unknown_tenant'],
  requests: { 'ten thousand a month': { metric: 'billable', threshold: 10_000, period: 'month' } },
  params: OF_TENANT,
  body: UsageAlertInput,
  answers: {
    200: {
      schema: named('TenantUsageAlerts', { usageAlerts: UsageAlerts }),
      description: 'All of the tenant.',
      example: { usageAlerts: [{ metric: 'billable', period: 'month', threshold: 10_000 }] },
    },
  },
  run: async (call, { externalId, ...alert }) =>
    await inTenant(
      call,
      { externalId },
      async (tools, { userId }) => await setUsageAlert(tools, userId, alert),
    ),
  json: (usageAlerts) => ({ usageAlerts }),
  example: 'put-usage-alert acme --metric billable --period month --threshold 10000',
});

export const USAGE_OPERATIONS = [getTenantUsage, getTenantUsageFile, putUsageAlert];
