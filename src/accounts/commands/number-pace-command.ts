import { Command } from 'commander';
import { invalidValue } from '../../platform/account-error.ts';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { setNumberPace, wabaOfNumber } from '../number-pace.ts';

/** `admin waba set-pace` */
export function setPaceCommand(): Command {
  const command = new Command('set-pace')
    .description(
      'how many messages may leave one phone number per second; others use HELIOGRAPH_SEND_MESSAGES_PER_SECOND',
    )
    .argument('<phoneNumberId>')
    .requiredOption('--per-second <number>', '1 to 1000; "default" goes back to the setting');
  const example = 'waba set-pace 800000000000111 --per-second 20';
  return adminAction<{ perSecond: string }>(command, example, async ({ tools, args, options }) => {
    const [phoneNumberId = ''] = args;
    const { perSecond } = options;
    if (!/^(default|\d{1,6})$/.test(perSecond)) {
      throw invalidValue('Give --per-second a whole number, or "default".');
    }
    const messagesPerSecond = perSecond === 'default' ? null : Number(perSecond);
    const wabaId = await wabaOfNumber(tools.database, phoneNumberId);
    await setNumberPace(tools, wabaId, { phoneNumberId, messagesPerSecond });
    const pace = messagesPerSecond ?? tools.config.sending.messagesPerSecond;
    return {
      json: { wabaId, phoneNumberId, messagesPerSecond },
      text: `Up to ${pace} messages per second leave ${phoneNumberId}${messagesPerSecond === null ? ' (the setting)' : ''}.`,
    };
  });
}
