import { Command } from 'commander';
import { invalidValue } from '../../platform/account-error.ts';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { removeNumber, removeWaba } from '../account-removal.ts';
import { knownWaba } from '../known-accounts.ts';

/** `admin waba remove` */
export function wabaRemoveCommand(): Command {
  const command = new Command('remove')
    .description(
      'take a WABA away: its keys, its token, and its endpoints with what waits; its history stays',
    )
    .argument('<wabaId>')
    .option('--yes', 'yes, remove it');
  const example = 'waba remove 900000000000101 --yes';
  return adminAction<{ yes?: true }>(command, example, async ({ tools, args, options }) => {
    const [wabaId = ''] = args;
    const { businessName } = await knownWaba(tools.database, wabaId);
    if (!options.yes)
      throw invalidValue(`WABA ${wabaId} of ${businessName} would be removed: say so with --yes.`);
    const removed = await removeWaba(tools, wabaId);
    const history = removed.kept
      ? 'its history is kept, and only its tenant can have it again'
      : 'it is gone';
    return {
      json: removed,
      text: `WABA ${wabaId} is removed with ${removed.endpoints} endpoints (${removed.dropped} deliveries dropped); ${history}.`,
    };
  });
}

/** `admin waba remove-number` */
export function numberRemoveCommand(): Command {
  const command = new Command('remove-number')
    .description(
      'take a number away from a WABA, whatever upstream lists; "waba add --number" brings it back',
    )
    .argument('<wabaId>')
    .argument('<phoneNumberId>');
  const example = 'waba remove-number 900000000000101 800000000000112';
  return adminAction(command, example, async ({ tools, args }) => {
    const [wabaId = '', phoneNumberId = ''] = args;
    await removeNumber(tools, wabaId, phoneNumberId);
    return {
      json: { wabaId, phoneNumberId, removed: true },
      text: `Phone number ${phoneNumberId} is removed from WABA ${wabaId}; its history is kept.`,
    };
  });
}
