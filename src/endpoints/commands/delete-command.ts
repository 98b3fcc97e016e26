import { Command } from 'commander';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { shownCount } from '../../queue/waiting.ts';
import { deleteEndpoint } from '../endpoint-modes.ts';
import { endpointForOperator, endpointStatus } from '../endpoints.ts';

/** `admin endpoint delete` */
export function endpointDeleteCommand(): Command {
  const command = new Command('delete')
    .description('delete a webhook endpoint and drop its pending deliveries; the log of its deliveries stays')
    .argument('<id>')
    .option('--yes', 'yes, delete it');
  return adminAction<{ yes?: true }>(command, 'endpoint delete 3 --yes', async ({ tools, args, options }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    if (!options.yes) {
      const { url, waiting } = await endpointStatus(tools, wabaId, id);
      throw invalidValue(
        `Endpoint ${id} (${url}) would be deleted with ${shownCount(waiting)} pending deliveries: say so with --yes.`,
      );
    }
    const deleted = await deleteEndpoint(tools, wabaId, id);
    const dropped = deleted.dropped.toLocaleString('en-US');
    return { json: deleted, text: `Endpoint ${id} is deleted; ${dropped} pending deliveries were dropped.` };
  });
}
