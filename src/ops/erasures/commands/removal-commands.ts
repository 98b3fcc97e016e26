import { Command } from 'commander';
import { knownTenant, knownWaba } from '../../../features/accounts/accounts.ts';
import { adminAction } from '../../../platform/cli/admin-action.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { removeTenant, removeWaba } from '../account-removal.ts';

export function wabaRemoveCommand(): Command {
  const command = new Command('remove')
    .description(
      'remove a WABA: its keys, its token, and its endpoints with their pending deliveries; its history is kept',
    )
    .argument('<wabaId>')
    .option('--yes', 'confirm the removal');
  const example = 'waba remove 900000000000101 --yes';
  return adminAction<{ yes?: true }>(command, example, async ({ tools, args, options }) => {
    const [wabaId = ''] = args;
    const { businessName } = await knownWaba(tools.database, wabaId);
    if (!options.yes)
      throw invalidValue(`WABA ${wabaId} of ${businessName} would be removed: confirm with --yes.`);
    const removed = await removeWaba(tools, wabaId);
    const history = removed.kept
      ? 'its history is kept, and only its tenant can have it again'
      : 'it is gone';
    return {
      json: removed,
      text: `WABA ${wabaId} is removed with ${removed.endpoints} endpoints (${removed.dropped} deliveries dropped); ${history}.`,
    };
  });
}

export function tenantRemoveCommand(): Command {
  const command = new Command('remove')
    .description('remove a tenant: its WABAs (see waba remove), keys, endpoints and memberships')
    .argument('<tenantId>')
    .option('--yes', 'confirm the removal');
  return adminAction<{ yes?: true }>(command, 'tenant remove 3 --yes', async ({ tools, args, options }) => {
    const [userId = ''] = args;
    const { businessName } = await knownTenant(tools.database, userId);
    if (!options.yes)
      throw invalidValue(`Tenant ${userId} (${businessName}) would be removed: confirm with --yes.`);
    const { wabaIds, kept } = await removeTenant(tools, userId);
    return {
      json: { userId: Number(userId), wabaIds, kept },
      text: `Tenant ${userId} is removed with ${wabaIds.length} WABAs; the history of ${kept.length} of them is kept.`,
    };
  });
}
