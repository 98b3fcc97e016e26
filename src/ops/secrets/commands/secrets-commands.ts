import { Command } from 'commander';
import { adminAction, alignedFields, alignedTable } from '../../../platform/cli/admin-action.ts';
import { reencryptSecrets, secretStatus, unreadableSecrets } from '../secret-keys.ts';

export function secretsCommand(): Command {
  return new Command('secrets')
    .description('the encryption keys of stored secrets')
    .addCommand(statusCommand())
    .addCommand(reencryptCommand());
}

function statusCommand(): Command {
  const command = new Command('status').description(
    'count the stored secrets by the key that encrypted them, and list the keys that are no longer needed',
  );
  return adminAction(command, 'secrets status', async ({ tools }) => {
    const [status, unreadable] = await Promise.all([secretStatus(tools), unreadableSecrets(tools)]);
    const { currentKeyId, retirableKeyIds, stored } = status;
    const isUnreadable = (row: (typeof stored)[number]) =>
      unreadable.some(
        ({ table, column, keyId }) => table === row.table && column === row.column && keyId === row.keyId,
      );
    return {
      found: unreadable.length === 0,
      json: { ...status, unreadable },
      notes:
        unreadable.length === 0
          ? []
          : ['the secrets of the rows with "no" cannot be opened: their key is missing or another one'],
      text: [
        alignedFields([
          ['encrypts', currentKeyId],
          ['not needed', retirableKeyIds.length === 0 ? 'none' : retirableKeyIds],
        ]),
        '',
        alignedTable(
          ['TABLE', 'COLUMN', 'KEY', 'SECRETS', 'OPEN'],
          stored.map((row) => [
            row.table,
            row.column,
            row.keyId,
            row.count,
            isUnreadable(row) ? 'no' : 'yes',
          ]),
          'No secret is stored.',
        ),
      ].join('\n'),
    };
  });
}

function reencryptCommand(): Command {
  const command = new Command('reencrypt').description(
    'encrypt all stored secrets with the first key, online; safe to rerun if interrupted',
  );
  return adminAction(command, 'secrets reencrypt', async ({ tools }) => {
    const progress = (count: number) => process.stderr.write(`${count.toLocaleString('en-US')} so far\n`);
    const { keyId, reencrypted, remaining } = await reencryptSecrets(tools, progress);
    const left = remaining.map((row) => `${row.count} of ${row.table}.${row.column} under ${row.keyId}`);
    const count = reencrypted.toLocaleString('en-US');
    const done = `Nothing needs another key than ${keyId} any more: take the others out of HELIOGRAPH_ENCRYPTION_KEYS.`;
    const undone = `These cannot be opened, their key is missing or another one: ${left.join('; ')}.`;
    return {
      found: remaining.length === 0,
      json: { keyId, reencrypted, remaining },
      text: `${count} stored ${reencrypted === 1 ? 'secret is' : 'secrets are'} encrypted anew with ${keyId}. ${left.length === 0 ? done : undone}`,
    };
  });
}
