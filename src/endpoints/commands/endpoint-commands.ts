import { Command } from 'commander';
import { shownCount } from '../../deliveries/shown-count.ts';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { alignedTable } from '../../platform/cli/aligned-text.ts';
import { endpointForOperator, endpointStatus, endpointsOf } from '../endpoints.ts';
import { endpointAddCommand } from './endpoint-add-command.ts';
import { endpointDeleteCommand } from './endpoint-delete-command.ts';
import {
  endpointDisableCommand,
  endpointEnableCommand,
  endpointPauseCommand,
} from './endpoint-mode-commands.ts';
import { endpointRotateSecretCommand } from './endpoint-secret-command.ts';
import { endpointTestCommand } from './endpoint-test-command.ts';
import { describeEndpoint } from './endpoint-text.ts';
import { endpointUpdateCommand } from './endpoint-update-command.ts';

/** `admin endpoint …` */
export function endpointCommand(): Command {
  return new Command('endpoint')
    .description("tenants' servers that receive webhooks")
    .addCommand(endpointAddCommand())
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(endpointUpdateCommand())
    .addCommand(endpointPauseCommand())
    .addCommand(endpointDisableCommand())
    .addCommand(endpointEnableCommand())
    .addCommand(endpointRotateSecretCommand())
    .addCommand(endpointTestCommand())
    .addCommand(endpointDeleteCommand());
}

function listCommand(): Command {
  const command = new Command('list')
    .description('list the webhook endpoints of a WABA')
    .requiredOption('--waba <id>', 'the WABA');
  const example = 'endpoint list --waba 900000000000101';
  return adminAction<{ waba: string }>(command, example, async ({ tools, options }) => {
    const endpoints = await endpointsOf(tools, options.waba);
    return {
      json: endpoints,
      text: alignedTable(
        ['ID', 'MODE', 'WAITING', 'EVENTS', 'URL', 'DESCRIPTION'],
        endpoints.map(({ id, mode, waiting, eventTypes, url, description }) => [
          id,
          mode,
          shownCount(waiting),
          eventTypes ?? 'all',
          url,
          description,
        ]),
        `WABA ${options.waba} has no webhook endpoints yet; add one with: admin endpoint add --waba ${options.waba} --url <url>`,
      ),
    };
  });
}

function showCommand(): Command {
  const command = new Command('show')
    .description('show a webhook endpoint, its mode and what waits for it')
    .argument('<id>');
  return adminAction(command, 'endpoint show 3', async ({ tools, args }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    return describeEndpoint(await endpointStatus(tools, wabaId, id));
  });
}
