import { Command } from 'commander';
import { bodyCommands } from './commands/body-commands.ts';
import { faultCommand } from './commands/fault-commands.ts';
import { groupCommand } from './commands/group-commands.ts';
import { messageCommands } from './commands/message-commands.ts';
import { routingCommand } from './commands/routing-commands.ts';
import type { CommandEnvironment } from './commands/sandbox-action.ts';
import { serverCommands } from './commands/server-commands.ts';
import { statusCommands } from './commands/status-commands.ts';

const DEFAULT_ENVIRONMENT: CommandEnvironment = {
  stateFile: '.data/embedded.json',
  write: (text) => process.stdout.write(text),
  writeError: (text) => process.stderr.write(text),
  setExitCode: (code) => {
    process.exitCode = code;
  },
};

/**
 * The `sandbox` command with everything below it.
 * @param overrides where it reads the state of the embedded stack and where it writes.
 */
export function createSandboxCommand(overrides: Partial<CommandEnvironment> = {}): Command {
  const environment = { ...DEFAULT_ENVIRONMENT, ...overrides };
  const command = new Command('sandbox')
    .description('development tools: play the upstream platform and its customers')
    .addHelpText('after', '\nExample:\n  npm run sandbox -- message "hello"');
  const parts = [
    ...messageCommands(environment),
    ...statusCommands(environment),
    ...bodyCommands(environment),
    groupCommand(environment),
    routingCommand(environment),
    faultCommand(environment),
    ...serverCommands(environment),
  ];
  for (const part of parts) {
    command.addCommand(part);
  }
  return command;
}
