import { Command } from 'commander';
import { adminAction, alignedFields } from '../../../platform/cli/admin-action.ts';
import { knownWaba } from '../../accounts/accounts.ts';
import { limitWebhookTargets, webhookTargets } from '../webhook-targets.ts';

type TargetOptions = { waba: string; allow?: string[]; deny?: string[] };

export function endpointTargetsCommand(): Command {
  const command = new Command('targets')
    .description('show or set where the webhooks and alerts of a WABA may go; --deny overrides --allow')
    .requiredOption('--waba <id>', 'the WABA')
    .option(
      '--allow <targets>',
      'allowed only: host, *.domain, IP or CIDR, optionally with :port; "" for anywhere',
      parseList,
    )
    .option('--deny <targets>', 'not these; "" for none', parseList);
  const example = 'endpoint targets --waba 900000000000101 --allow "hooks.shop.example,10.1.0.0/16:8443"';
  return adminAction<TargetOptions>(command, example, async ({ tools, options }) => {
    const { waba, allow, deny } = options;
    await knownWaba(tools.database, waba);
    const given = { ...(allow && { allow }), ...(deny && { deny }) };
    const isChange = allow !== undefined || deny !== undefined;
    const lists = isChange
      ? await limitWebhookTargets(tools, waba, given)
      : await webhookTargets(tools.database, waba);
    return {
      json: { wabaId: waba, ...lists },
      text: alignedFields([
        ['allow', lists.allow.length === 0 ? 'anywhere' : lists.allow],
        ['deny', lists.deny.length === 0 ? 'nothing' : lists.deny],
      ]),
    };
  });
}

function parseList(text: string): string[] {
  return text.split(',');
}
