import { Command, type CommanderError } from 'commander';
import { optOutWordsCommand } from './api/customers/opt-out-words.ts';
import { deliveryCommand } from './api/deliveries/retries.ts';
import { endpointCommand } from './api/endpoints/endpoint-command.ts';
import { operationsUrlCommand } from './api/endpoints/operations-url.ts';
import { broadcastCommand } from './api/messages/broadcasts/broadcasts.ts';
import { platformCommand } from './api/provisioning/platform-command.ts';
import { replayCommand } from './api/replays/replays.ts';
import { tenantCommand } from './features/accounts/commands/tenant-commands.ts';
import { wabaCommand } from './features/accounts/commands/waba-commands.ts';
import { eventsCommand, findCommand } from './features/delivery-log/commands/find-command.ts';
import { keyCommand, keyRequestCommand } from './features/keys/commands/key-commands.ts';
import { platformKeyCommand } from './features/keys/commands/platform-key-commands.ts';
import { mailCommand } from './features/mail/commands/mail-commands.ts';
import { userCommand } from './features/users/commands/user-commands.ts';
import { inboxCommand } from './ingest/bodies/commands/inbox-commands.ts';
import { alertsCommand } from './ops/alerts/commands/alert-commands.ts';
import { eraseCommand, erasuresCommand, exportCommand } from './ops/erasures/commands/erase-commands.ts';
import { tenantRemoveCommand, wabaRemoveCommand } from './ops/erasures/commands/removal-commands.ts';
import { wabaCheckCommand } from './ops/health/commands/waba-check-command.ts';
import { topCommand } from './ops/health/top-command.ts';
import { secretsCommand } from './ops/secrets/commands/secrets-commands.ts';
import { auditCommand } from './platform/audit/audit-commands.ts';
import { migrateCommand } from './platform/postgres/migrate-commands.ts';

const WRONG_USAGE = 2;

/** The `admin` command: what an operator does that has no page yet. */
export function buildAdminCommand(): Command {
  const command = new Command('admin')
    .description('operate an installation: tenants, WABAs, users, API keys, webhook endpoints, events')
    .addHelpText('after', '\nExample:\n  npm run -s admin -- tenant create --name "Fixture Store" --json');
  const parts = [
    tenantCommand().addCommand(tenantRemoveCommand()),
    wabaCommand().addCommand(wabaCheckCommand()).addCommand(wabaRemoveCommand()),
    userCommand(),
    keyCommand(),
    keyRequestCommand(),
    platformKeyCommand(),
    platformCommand(),
    endpointCommand(),
    operationsUrlCommand(),
    alertsCommand(),
    mailCommand(),
    deliveryCommand(),
    replayCommand(),
    broadcastCommand(),
    optOutWordsCommand(),
    findCommand(),
    eventsCommand(),
    inboxCommand(),
    topCommand(),
    eraseCommand(),
    erasuresCommand(),
    exportCommand(),
    secretsCommand(),
    auditCommand(),
    migrateCommand(),
  ];
  for (const part of parts) command.addCommand(part);
  settleUsageErrors(command);
  return command;
}

/** Of several options that are missing, commander names the first alone. */
function nameAllMissing(command: Command): void {
  command.configureOutput({
    outputError: (text, write) => {
      const missing = command.options.filter(
        (option) => option.mandatory && command.getOptionValue(option.attributeName()) === undefined,
      );
      if (missing.length < 2 || !text.includes('required option')) return write(text);
      write(`error: required options not specified: ${missing.map(({ flags }) => flags).join(', ')}\n`);
    },
  });
}

/** Wrong usage ends with exit code 2, so that scripts can tell it from a refusal (1). */
function settleUsageErrors(command: Command): void {
  command
    .showHelpAfterError('(add --help for how to use it)')
    .exitOverride((error: CommanderError) => process.exit(error.exitCode === 0 ? 0 : WRONG_USAGE));
  nameAllMissing(command);
  for (const part of command.commands) settleUsageErrors(part);
}
