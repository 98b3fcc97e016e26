import type { Command } from 'commander';
import { commandGroup, operationCommand } from '../operations/operation-command.ts';
import { REPLAY_OPERATIONS } from './replays.ts';

export function replayCommand(): Command {
  const parts = REPLAY_OPERATIONS.filter(({ command }) => command !== undefined).map(operationCommand);
  const description = 'send deliveries again: behind new events, each with the id and the bytes that it had';
  return commandGroup('replay', description, parts);
}
