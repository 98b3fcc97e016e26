import { Command } from 'commander';
import { createTenant } from '../../accounts/tenants.ts';
import { listTenants } from '../../database/account-list.ts';
import { adminAction } from './admin-action.ts';
import { alignedFields, alignedTable } from './aligned-text.ts';

/** `admin tenant …` */
export function tenantCommand(): Command {
  return new Command('tenant')
    .description('businesses that use this gateway')
    .addCommand(createCommand())
    .addCommand(listCommand());
}

function createCommand(): Command {
  const command = new Command('create')
    .description('add a tenant; prints its userId')
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
