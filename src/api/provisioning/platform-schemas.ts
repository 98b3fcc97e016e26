import { Type } from 'typebox';
import {
  type ExternalTenant,
  externalTenant,
  REFERENCE as NAME,
} from '../../features/accounts/external-tenants.ts';
import {
  effectivePolicy,
  POLICY_NAMES,
  type PolicyName,
  readTenantPolicy,
} from '../../features/accounts/tenant-policies.ts';
import { readTenantUsage } from '../../features/accounts/tenant-usage.ts';
import { USAGE_METRICS } from '../../features/accounts/usage-alerts.ts';
import type { Database } from '../../platform/postgres/database.ts';
import {
  count,
  dateTime,
  named,
  namedClosed,
  nullable,
  optionalParameter,
  parameter,
  text,
} from '../external/schema-kit.ts';
import type { PlatformCall } from './platform-operation.ts';

/** A name that the program gives, as it stands in a path. */
export const REFERENCE = NAME.source;

export const EXTERNAL_ID = parameter(
  Type.String({ pattern: REFERENCE }),
  'Your own id of the tenant: 1 to 128 letters, digits or `. _ ~ -`. It stands in logs, so use no phone number and no address.',
  'acme',
);

/** Of what there is for all tenants: for one of them. */
export function tenantFilter(what: string) {
  const about = `Only ${what} of the tenant with this externalId.`;
  return optionalParameter(Type.String({ pattern: REFERENCE }), about, 'acme');
}

/** Null: of all tenants. Throws RequestError `unknown_tenant`. */
export async function tenantIdOf(database: Database, externalId: string | undefined): Promise<string | null> {
  return externalId === undefined ? null : (await externalTenant(database, externalId)).userId;
}

export const WABA_ID = parameter(
  Type.String({ pattern: '^[0-9]{1,64}$' }),
  'The id of the WABA at the upstream platform.',
  '900000000000101',
);

export const OF_TENANT = Type.Object({ externalId: EXTERNAL_ID });
export const OF_WABA = Type.Object({ externalId: EXTERNAL_ID, wabaId: WABA_ID });

export const TENANT_PATH = '/api/platform/tenants/:externalId';
export const WABA_PATH = `${TENANT_PATH}/wabas/:wabaId` as const;

const number = (id: string) =>
  Type.Object({
    phoneNumberId: text(id),
    displayPhoneNumber: text('12025550100'),
    verifiedName: text('Fixture Store'),
    qualityRating: nullable(Type.String(), 'GREEN'),
  });

export const PlatformWaba = named('PlatformWaba', {
  wabaId: text('900000000000101'),
  hasAccessToken: Type.Boolean({ examples: [true] }),
  phoneNumbers: Type.Array(number('800000000000111')),
});

const policyValue = nullable(Type.Integer({ minimum: 0 }), 90);

export const policyMembers = Object.fromEntries(POLICY_NAMES.map((name) => [name, policyValue])) as Record<
  PolicyName,
  typeof policyValue
>;

export const Metadata = Type.Record(Type.String(), Type.String(), {
  description: 'Up to 20 texts of 500 characters by names of 40. Only platform keys see them.',
  examples: [{ plan: 'gold' }],
});

const usageMetric = Type.Enum([...USAGE_METRICS], {
  description: 'The count, as in `GET /api/platform/usage/messages`.',
  examples: ['billable'],
});
const usagePeriod = Type.Enum(['day', 'month'], { description: 'A UTC day or month.', examples: ['month'] });
const threshold = Type.Integer({ minimum: 1, maximum: 1e12, examples: [10_000] });

export const UsageAlertInput = namedClosed('UsageAlertInput', {
  metric: usageMetric,
  period: usagePeriod,
  threshold: nullable(threshold, 10_000),
});

export const UsageAlerts = Type.Array(
  named('UsageAlert', { metric: usageMetric, period: usagePeriod, threshold }),
  { description: 'Counts at which operators are alerted.' },
);

export const Tenant = named('Tenant', {
  externalId: nullable(Type.String(), 'acme'),
  userId: count(7),
  businessName: text('Acme Ltd'),
  state: Type.Enum(['active', 'suspended'], { examples: ['active'] }),
  suspendReason: nullable(Type.String()),
  metadata: Metadata,
  usageAlerts: UsageAlerts,
  wabas: Type.Array(PlatformWaba),
  quotas: Type.Object(policyMembers, { description: 'What holds for the tenant; null: no limit, no end.' }),
  usage: Type.Object({
    storedBytes: count(734_003_200),
    storedFiles: count(1_204),
    uploadedBytes: count(4_194_304),
    uploadedFiles: count(12),
  }),
  createdAt: dateTime('2026-11-01T08:00:00.000Z'),
  updatedAt: dateTime('2026-11-20T10:00:00.000Z'),
});

/** A tenant as the API shows it. */
export async function tenantJson(
  { tools: { database }, policyDefaults }: PlatformCall,
  tenant: ExternalTenant,
) {
  const { userId } = tenant;
  const [own, usage] = await Promise.all([
    readTenantPolicy(database, userId),
    readTenantUsage(database, userId),
  ]);
  return { ...tenant, userId: Number(userId), quotas: effectivePolicy(own, policyDefaults), usage };
}
