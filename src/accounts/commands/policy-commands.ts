import { Command, InvalidArgumentError } from 'commander';
import { adminAction, alignedTable } from '../../platform/cli/admin-action.ts';
import { invalidValue } from '../../platform/request-input.ts';
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

/** `admin tenant policy` */
export function showPolicyCommand(): Command {
  const command = new Command('policy')
    .description('show what a tenant has in place of the installation’s settings')
    .argument('<userId>');
  return adminAction(command, 'tenant policy 1', async ({ tools, args }) => {
    const [userId = ''] = args;
    await knownTenant(tools.database, userId);
    const own = await readTenantPolicy(tools.database, userId);
    return policyOutcome(userId, own, policyDefaults(tools.config));
  });
}

/** `admin tenant set-policy` */
export function setPolicyCommand(): Command {
  const command = new Command('set-policy')
    .description('give a tenant values of its own; "default" takes one away')
    .argument('<userId>');
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
