import { Command } from 'commander';
import { endpointCertificateCommand } from '../../features/endpoints/commands/certificate-commands.ts';
import { endpointTargetsCommand } from '../../features/endpoints/commands/target-commands.ts';
import { holdEndpoint } from '../../features/endpoints/endpoint-modes.ts';
import { endpointStatus } from '../../features/endpoints/endpoints.ts';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { retryWebhookEndpoint } from '../deliveries/retries.ts';
import { commandGroup, operationCommand } from '../operations/operation-command.ts';
import { testWebhookEndpoint } from './endpoint-checks.ts';
import {
  createWebhookEndpoint,
  deleteWebhookEndpoint,
  getWebhookEndpoint,
  listWebhookEndpoints,
  updateWebhookEndpoint,
} from './endpoint-operations.ts';
import { wabaOfEndpoint } from './endpoint-schemas.ts';
import { rotateWebhookEndpointSecret, rotateWebhookEndpointSigningKey } from './endpoint-secrets.ts';
import { describeEndpoint } from './endpoint-text.ts';
import { enableWebhookEndpoint, pauseWebhookEndpoint } from './mode-operations.ts';

export function endpointCommand(): Command {
  return commandGroup('endpoint', "tenants' servers that receive webhooks", [
    operationCommand(createWebhookEndpoint),
    operationCommand(listWebhookEndpoints),
    operationCommand(getWebhookEndpoint),
    operationCommand(updateWebhookEndpoint),
    operationCommand(pauseWebhookEndpoint),
    disableCommand(),
    operationCommand(enableWebhookEndpoint),
    operationCommand(retryWebhookEndpoint),
    operationCommand(rotateWebhookEndpointSecret),
    operationCommand(rotateWebhookEndpointSigningKey),
    endpointCertificateCommand(),
    operationCommand(testWebhookEndpoint),
    operationCommand(deleteWebhookEndpoint),
    endpointTargetsCommand(),
  ]);
}

/** Tenants pause their endpoints; only operators and the breaker disable them. */
function disableCommand(): Command {
  const command = new Command('disable')
    .description('disable it until it is enabled; its events wait, none is lost')
    .argument('<id>')
    .option('--reason <text>', 'the reason that operators and tenants see', 'disabled by an operator');
  return adminAction<{ reason: string }>(
    command,
    'endpoint disable 3',
    async ({ tools, args, options: { reason } }) => {
      const [id = ''] = args;
      const wabaId = await wabaOfEndpoint(tools, id);
      await holdEndpoint(tools, wabaId, { id, mode: 'disabled', reason });
      return describeEndpoint(tools.config, await endpointStatus(tools, wabaId, id));
    },
  );
}
