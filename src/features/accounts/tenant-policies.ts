import { type Audited, recordBy } from '../../platform/audit/audit.ts';
import type { Config } from '../../platform/config/config.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { knownTenant } from './accounts.ts';

/** A value that a tenant can have in place of the installation's. */
type PolicyValue = {
  readonly column: string;
  /** Who may set it: administrators of the tenant too, or operators only. */
  readonly by: 'tenant' | 'operator';
  readonly unit: string;
  readonly minimum: number;
  readonly maximum: number;
  readonly label: string;
  readonly about: string;
};

export const POLICY_VALUES = {
  messageDays: {
    column: 'message_days',
    by: 'tenant',
    unit: 'days',
    minimum: 1,
    maximum: 36_500,
    label: 'Messages',
    about:
      'Older messages are erased, with their statuses, files and events; then conversations and customers without messages.',
  },
  mediaDays: {
    column: 'media_days',
    by: 'tenant',
    unit: 'days',
    minimum: 1,
    maximum: 36_500,
    label: 'Received files',
    about: 'Older files are removed. Their messages stay, and their URLs return 410.',
  },
  eventDays: {
    column: 'event_days',
    by: 'tenant',
    unit: 'days',
    minimum: 1,
    maximum: 36_500,
    label: 'Events',
    about: 'Older events are deleted with the log of their deliveries, unless a delivery is pending.',
  },
  auditDays: {
    column: 'audit_days',
    by: 'operator',
    unit: 'days',
    minimum: 30,
    maximum: 36_500,
    label: 'Audit log',
    about: 'Older entries are removed. The chain of hashes notes it, and can still be verified.',
  },
  mediaUrlTtlSeconds: {
    column: 'media_url_ttl_seconds',
    by: 'tenant',
    unit: 'seconds',
    minimum: 60,
    maximum: 31_536_000,
    label: 'Expiry of media URLs',
    about: 'For how long a mediaUrl is valid. It is then signed; an expired one returns 403.',
  },
  storedBytesQuota: {
    column: 'stored_bytes_quota',
    by: 'operator',
    unit: 'bytes',
    minimum: 0,
    maximum: 1e15,
    label: 'Stored files',
    about:
      'Received and uploaded files together. Above it, uploads are refused and received files are not stored.',
  },
  uploadFilesPerDay: {
    column: 'upload_files_per_day',
    by: 'operator',
    unit: 'files',
    minimum: 0,
    maximum: 1e9,
    label: 'Uploaded files per day',
    about: 'Files to send that may be uploaded on one UTC day.',
  },
  uploadBytesPerDay: {
    column: 'upload_bytes_per_day',
    by: 'operator',
    unit: 'bytes',
    minimum: 0,
    maximum: 1e15,
    label: 'Uploaded bytes per day',
    about: 'Their size together.',
  },
} as const satisfies Record<string, PolicyValue>;

export type PolicyName = keyof typeof POLICY_VALUES;

export const POLICY_NAMES = Object.keys(POLICY_VALUES) as PolicyName[];

/** The tenant's own values; null: as the installation has it. */
export type TenantPolicy = Record<PolicyName, number | null>;

/** What the installation has; 0: no end, no limit. A tenant's own value may only be lower. */
export type PolicyDefaults = Record<PolicyName, number>;

export function policyDefaults({
  media,
  retentionDays,
}: Pick<Config, 'media' | 'retentionDays'>): PolicyDefaults {
  return {
    messageDays: 0,
    mediaDays: 0,
    eventDays: retentionDays.events,
    auditDays: 0,
    mediaUrlTtlSeconds: media.urlTtlSeconds,
    storedBytesQuota: 0,
    uploadFilesPerDay: 0,
    uploadBytesPerDay: 0,
  };
}

const COLUMNS = POLICY_NAMES.map((name) => `p.${POLICY_VALUES[name].column} as "${name}"`).join(', ');

export async function readTenantPolicy(database: Database, tenantId: string): Promise<TenantPolicy> {
  const [row] = await query<Record<PolicyName, string | number | null>>(
    database,
    `select ${COLUMNS} from tenants t left join tenant_policies p on p.tenant_id = t.id where t.id = :tenantId`,
    { tenantId },
  );
  const read = (name: PolicyName) => (row?.[name] == null ? null : Number(row[name]));
  return Object.fromEntries(POLICY_NAMES.map((name) => [name, read(name)])) as TenantPolicy;
}

/** What holds for a tenant: the lower of the tenant's value and the installation's; null: no end, no limit. */
export function effectivePolicy(own: TenantPolicy, defaults: PolicyDefaults): TenantPolicy {
  const effective = (name: PolicyName) => {
    const bound = defaults[name] === 0 ? null : defaults[name];
    const value = own[name];
    if (value === null || bound === null) return value ?? bound;
    return Math.min(value, bound);
  };
  return Object.fromEntries(POLICY_NAMES.map((name) => [name, effective(name)])) as TenantPolicy;
}

/** Null takes a value away. Throws RequestError: `unknown_tenant`, `invalid_value` with `param` for one out of bounds. */
export async function setTenantPolicy(
  { database, actor, defaults }: { database: Database; defaults: PolicyDefaults } & Audited,
  tenantId: string,
  change: Partial<TenantPolicy>,
): Promise<TenantPolicy> {
  await knownTenant(database, tenantId);
  const names = POLICY_NAMES.filter((name) => change[name] !== undefined);
  for (const name of names) checkValue(name, change[name] ?? null, defaults);
  return await database.transaction(async (trx) => {
    const text = 'insert into tenant_policies (tenant_id) values (:tenantId) on conflict do nothing';
    await execute(trx, text, { tenantId });
    await query(trx, 'select 1 from tenant_policies where tenant_id = :tenantId for update', { tenantId });
    const before = await readTenantPolicy(trx, tenantId);
    const changed = names.filter((name) => before[name] !== change[name]);
    for (const name of changed) {
      const { column } = POLICY_VALUES[name];
      const text = `update tenant_policies set ${column} = :value where tenant_id = :tenantId`;
      await execute(trx, text, { value: change[name] ?? null, tenantId });
    }
    if (changed.length > 0) {
      const detail = Object.fromEntries(changed.map((name) => [name, change[name] ?? null]));
      const entry = { tenantId, wabaId: null, target: `tenant ${tenantId}`, detail };
      await recordBy(trx, actor, { ...entry, action: 'tenant.policy_changed' });
    }
    return await readTenantPolicy(trx, tenantId);
  });
}

function checkValue(name: PolicyName, value: number | null, defaults: PolicyDefaults): void {
  if (value === null) return;
  const { minimum, maximum, unit, label } = POLICY_VALUES[name];
  const bound = defaults[name] === 0 ? maximum : Math.min(maximum, defaults[name]);
  if (Number.isSafeInteger(value) && value >= minimum && value <= bound) return;
  const most =
    bound < minimum
      ? 'cannot be set here: the installation allows less'
      : `must be ${minimum} to ${bound} ${unit}`;
  throw invalidValue(`${label} (${name}) ${most}.`, name);
}
