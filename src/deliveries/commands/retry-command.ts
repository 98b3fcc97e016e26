import { Command } from 'commander';
import { endpointForOperator } from '../../endpoints/endpoints.ts';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { retryEndpoint } from '../retry-now.ts';

/** `admin endpoint retry` */
export function endpointRetryCommand(): Command {
  const command = new Command('retry')
    .description(
      'make the next attempt of all that waits for a retry now; while it is probed, the next probe',
    )
    .argument('<id>');
  return adminAction(command, 'endpoint retry 3', async ({ tools, args }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    const { retried, probed, more } = await retryEndpoint(tools, wabaId, id);
    const notes = more ? ['there are more: run it again.'] : [];
    const probe = probed ? ', and it is probed now' : '';
    const deliveries = retried === 1 ? '1 delivery' : `${retried.toLocaleString('en-US')} deliveries`;
    const text = `${deliveries} to endpoint ${id} ${retried === 1 ? 'is' : 'are'} attempted now${probe}.`;
    return { json: { id, retried, probed, more }, text, notes };
  });
}
