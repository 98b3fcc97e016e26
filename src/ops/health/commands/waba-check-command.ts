import { Command } from 'commander';
import { knownWaba } from '../../../features/accounts/accounts.ts';
import { adminAction, alignedFields } from '../../../platform/cli/admin-action.ts';
import { checkWaba } from '../waba-check.ts';

export function wabaCheckCommand(): Command {
  const command = new Command('check')
    .description('check the way of a webhook of a WABA, from the upstream app to the endpoints of the tenant')
    .argument('<wabaId>');
  return adminAction(command, 'waba check 900000000000101', async ({ tools, args }) => {
    const { config, database } = tools;
    const [wabaId = ''] = args;
    await knownWaba(database, wabaId);
    const { openAccountClient } = await import('../../../platform/graph/graph-client.ts');
    const graph = openAccountClient(config);
    try {
      const { publicUrl } = config.api;
      const upstream = { client: async () => graph };
      const found = await checkWaba({ accounts: tools, database, upstream, publicUrl }, wabaId);
      const checks = Object.entries(found).map(([id, finding]) => ({ id, ...finding }));
      return {
        json: { wabaId, checks },
        text: alignedFields(
          checks.flatMap(({ status, question, detail, todo }) => [
            [`${status.padEnd(8)}  ${question}`, detail] as const,
            ...(todo === undefined ? [] : [['', `→ ${todo}`] as const]),
          ]),
        ),
      };
    } finally {
      await graph.close();
    }
  });
}
