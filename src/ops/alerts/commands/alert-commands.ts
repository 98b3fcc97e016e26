import { Command, Option } from 'commander';
import { adminAction, alignedTable } from '../../../platform/cli/admin-action.ts';
import { KINDS } from '../alert-kinds.ts';
import { allAlerts, resolveAlert } from '../alerts.ts';

const MOST_LISTED = 500;

export function alertsCommand(): Command {
  return new Command('alerts')
    .description('problems that need attention: endpoints, keys, tokens, silent WABAs, backlogs, quarantine')
    .addCommand(listCommand())
    .addCommand(resolveCommand());
}

function listCommand(): Command {
  const command = new Command('list')
    .description('list open alerts of all tenants and of the installation, the newest first')
    .option('--waba <id>', 'only those of this WABA')
    .addOption(new Option('--all', 'those that ended, too'));
  return adminAction<{ waba?: string; all?: true }>(command, 'alerts list', async ({ tools, options }) => {
    const state = options.all ? 'all' : 'open';
    const rows = await allAlerts(tools, { wabaId: options.waba ?? null, state, limit: MOST_LISTED });
    const alerts = rows.map(({ id: _, tenantId, ...alert }) => ({
      ...alert,
      userId: tenantId === null ? null : Number(tenantId),
    }));
    return {
      json: alerts,
      text: alignedTable(
        ['ID', 'ALERT', 'TENANT', 'REASON', 'SINCE', 'RESOLVED'],
        alerts.map((alert) => [
          alert.alertId,
          KINDS[alert.kind].title,
          alert.businessName ?? 'installation',
          alert.reason,
          alert.openedAt,
          alert.resolvedAt,
        ]),
        'No alert is open.',
      ),
    };
  });
}

function resolveCommand(): Command {
  const command = new Command('resolve')
    .description('resolve an alert; it reopens only if the condition clears and returns')
    .argument('<alert>', 'its id, as admin alerts list prints it');
  const example = 'alerts resolve alr_019a1b2c3d4e7f5061728394a5b6c7d8';
  return adminAction(command, example, async ({ tools, args }) => {
    const resolved = await resolveAlert(tools, args[0] ?? '');
    return { json: resolved, text: `${resolved.alertId} (${KINDS[resolved.kind].title}) is resolved.` };
  });
}
