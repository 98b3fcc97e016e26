import { Command, Option } from 'commander';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { enableEndpoint, holdEndpoint } from '../endpoint-modes.ts';
import { endpointForOperator, endpointStatus } from '../endpoints.ts';
import { describeEndpoint } from './endpoint-text.ts';

const BY = 'an operator';

/** `admin endpoint pause` */
export function endpointPauseCommand(): Command {
  return holdCommand('pause', 'let its events wait for a while; none is lost', 'paused');
}

/** `admin endpoint disable` */
export function endpointDisableCommand(): Command {
  return holdCommand(
    'disable',
    'switch it off until it is enabled; its events wait, none is lost',
    'disabled',
  );
}

function holdCommand(name: string, description: string, mode: 'paused' | 'disabled'): Command {
  const command = new Command(name)
    .description(description)
    .argument('<id>')
    .option('--reason <text>', 'the reason that operators and tenants see', `${mode} by ${BY}`);
  return adminAction<{ reason: string }>(command, `endpoint ${name} 3`, async ({ tools, args, options }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    await holdEndpoint(tools, wabaId, { id, mode, reason: options.reason });
    return describeEndpoint(await endpointStatus(tools, wabaId, id));
  });
}

/** `admin endpoint enable` */
export function endpointEnableCommand(): Command {
  const command = new Command('enable')
    .description('let its events go out')
    .argument('<id>')
    .addOption(
      new Option(
        '--waiting <what>',
        'what becomes of events that wait: send them first, in order, or drop them for good; needed when there are any',
      ).choices(['send', 'drop']),
    );
  return adminAction<{ waiting?: 'send' | 'drop' }>(
    command,
    'endpoint enable 3 --waiting send',
    async ({ tools, args, options }) => {
      const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
      const { waiting = null } = options;
      const { dropped } = await enableEndpoint(tools, wabaId, { id, waiting, by: BY });
      const { json, ...shown } = describeEndpoint(
        await endpointStatus(tools, wabaId, id),
        waiting === 'drop' ? [`${dropped.toLocaleString('en-US')} deliveries were dropped.`] : [],
      );
      return { ...shown, json: { ...json, dropped } };
    },
  );
}
