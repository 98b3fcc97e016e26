import { Command, InvalidArgumentError } from 'commander';
import { adminAction, alignedTable } from '../../../platform/cli/admin-action.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { knownTenant } from '../accounts.ts';
import {
  effectivePolicy,
  POLICY_NAMES,
  POLICY_VALUES,
  type PolicyDefaults,
  type PolicyName,
  policyDefaults,
  readTenantPolicy,
  setTenantPolicy,
  type TenantPolicy,
} from '../tenant-policies.ts';
import { listTenantUsage } from '../tenant-usage.ts';

export function showPolicyCommand(): Command {
  const command = new Command('policy').description('show the overrides of a tenant').argument('<tenantId>');
  return adminAction(command, 'tenant policy 1', async ({ tools, args }) => {
    const [userId = ''] = args;
    await knownTenant(tools.database, userId);
    const own = await readTenantPolicy(tools.database, userId);
    return policyOutcome(userId, own, policyDefaults(tools.config));
  });
}

const DEFAULT_LIMIT = 50;

export function usageCommand(): Command {
  const command = new Command('usage')
    .description('show the storage and today’s uploads (UTC) of tenants, those nearest to a quota first')
    .option('--limit <n>', 'how many tenants at most', parseLimit, DEFAULT_LIMIT);
  return adminAction<{ limit: number }>(command, 'tenant usage', async ({ tools, options }) => {
    const tenants = await listTenantUsage(tools.database, options.limit);
    return {
      json: tenants.map((tenant) => ({ ...tenant, userId: Number(tenant.userId) })),
      text: alignedTable(
        ['USER ID', 'BUSINESS', 'FILES', 'STORED BYTES', 'FILES TODAY', 'BYTES TODAY', 'OF A QUOTA'],
        tenants.map((tenant) => [
          ...[tenant.userId, tenant.businessName, tenant.storedFiles],
          ofQuota(tenant.storedBytes, tenant.storedBytesQuota),
          ofQuota(tenant.uploadedFiles, tenant.uploadFilesPerDay),
          ofQuota(tenant.uploadedBytes, tenant.uploadBytesPerDay),
          tenant.share === null ? '–' : `${Math.floor(tenant.share * 100)} %`,
        ]),
        'There are no tenants yet.',
      ),
    };
  });
}

function ofQuota(used: number, quota: number | null): string {
  return quota === null ? String(used) : `${used} of ${quota}`;
}

function parseLimit(text: string): number {
  if (/^\d{1,4}$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError('Write a whole number from 1 to 9999.');
}

export function setPolicyCommand(): Command {
  const command = new Command('set-policy')
    .description('override settings for a tenant; "default" removes an override')
    .argument('<tenantId>');
  for (const name of POLICY_NAMES) {
    const { unit, about } = POLICY_VALUES[name];
    command.option(`--${kebab(name)} <${unit}>`, about, parseValue);
  }
  const example = 'tenant set-policy 1 --media-url-ttl-seconds 3600';
  return adminAction<Partial<Record<PolicyName, number | 'default'>>>(
    command,
    example,
    async ({ tools, args, options }) => {
      const [userId = ''] = args;
      const given = POLICY_NAMES.filter((name) => options[name] !== undefined);
      if (given.length === 0) throw invalidValue('Name at least one value; --help lists them.');
      const change = Object.fromEntries(
        given.map((name) => [name, ownValue(options[name])]),
      ) as Partial<TenantPolicy>;
      const defaults = policyDefaults(tools.config);
      const own = await setTenantPolicy({ ...tools, defaults }, userId, change);
      return policyOutcome(userId, own, defaults);
    },
  );
}

function policyOutcome(userId: string, own: TenantPolicy, defaults: PolicyDefaults) {
  const effective = effectivePolicy(own, defaults);
  return {
    json: { userId: Number(userId), own, effective },
    text: alignedTable(
      ['VALUE', 'OWN', 'IN FORCE', 'UNIT'],
      POLICY_NAMES.map((name) => [
        name,
        own[name] ?? '–',
        effective[name] ?? 'no limit',
        POLICY_VALUES[name].unit,
      ]),
      '',
    ),
  };
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function ownValue(given: number | 'default' | undefined): number | null {
  return typeof given === 'number' ? given : null;
}

function parseValue(text: string): number | 'default' {
  if (text === 'default') return text;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Write a whole number, or "default".');
}
