import { Command } from 'commander';
import { adminAction, alignedFields, alignedTable } from '../../../platform/cli/admin-action.ts';
import { createTenant, listTenants, renameTenant } from '../accounts.ts';
import { setPolicyCommand, showPolicyCommand, usageCommand } from './policy-commands.ts';

export function tenantCommand(): Command {
  return new Command('tenant')
    .description('businesses that use this gateway')
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(renameCommand())
    .addCommand(showPolicyCommand())
    .addCommand(setPolicyCommand())
    .addCommand(usageCommand());
}

function createCommand(): Command {
  const command = new Command('create')
    .description('add a tenant; prints its id, which API and webhooks call userId')
    .requiredOption('--name <business name>', 'as the tenant knows itself');
  return adminAction<{ name: string }>(
    command,
    'tenant create --name "Fixture Store"',
    async ({ tools, options }) => {
      const tenant = await createTenant(tools, options.name);
      return {
        json: { ...tenant, userId: Number(tenant.userId) },
        text: alignedFields([
          ['userId', tenant.userId],
          ['business', tenant.businessName],
        ]),
      };
    },
  );
}

function listCommand(): Command {
  const command = new Command('list').description('list all tenants');
  return adminAction(command, 'tenant list', async ({ tools }) => {
    const tenants = await listTenants(tools.database);
    return {
      json: tenants.map((tenant) => ({ ...tenant, userId: Number(tenant.userId) })),
      text: alignedTable(
        ['USER ID', 'BUSINESS', 'WABAS', 'CREATED'],
        tenants.map((tenant) => [tenant.userId, tenant.businessName, tenant.wabaIds, tenant.createdAt]),
        'There are no tenants yet; add one with: admin tenant create --name <business name>',
      ),
    };
  });
}

function renameCommand(): Command {
  const command = new Command('rename')
    .description('give a tenant another name')
    .argument('<tenantId>')
    .requiredOption('--name <business name>', 'as the tenant knows itself');
  const example = 'tenant rename 1 --name "Fixture Store"';
  return adminAction<{ name: string }>(command, example, async ({ tools, args, options }) => {
    const tenant = await renameTenant(tools, args[0] ?? '', options.name);
    return {
      json: { ...tenant, userId: Number(tenant.userId) },
      text: `Tenant ${tenant.userId} is ${tenant.businessName} now.`,
    };
  });
}
