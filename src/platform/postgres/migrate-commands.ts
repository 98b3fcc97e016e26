import { Command } from 'commander';
import { adminAction, alignedFields, alignedTable } from '../cli/admin-action.ts';
import { readSchemaState } from './schema-state.ts';

export function migrateCommand(): Command {
  return new Command('migrate')
    .description('the schema of the database ("heliograph-server migrate" brings it to this version)')
    .addCommand(statusCommand());
}

function statusCommand(): Command {
  const command = new Command('status').description(
    'list the migrations that the database has, lacks, or has of a later version; exit code 1: it lacks some',
  );
  return adminAction(command, 'migrate status', async ({ tools }) => {
    const state = await readSchemaState(tools.database);
    const { applied, pending, later, functions, invalidIndexes, isRunning } = state;
    const listed = (names: readonly string[]) => (names.length === 0 ? 'none' : names.join(', '));
    return {
      found: pending.length === 0,
      json: state,
      notes: later.length > 0 ? ['a later version has migrated: this version works beside it'] : [],
      text: [
        alignedFields([
          ['pending', listed(pending)],
          ['of a later version', listed(later)],
          ['functions', functions],
          ['invalid indexes', listed(invalidIndexes)],
          ['migrating now', isRunning ? 'yes' : 'no'],
        ]),
        '',
        alignedTable(
          ['MIGRATION', 'APPLIED'],
          applied.map(({ name, at }) => [name, at.toISOString()]),
          'No migration is applied.',
        ),
      ].join('\n'),
    };
  });
}
