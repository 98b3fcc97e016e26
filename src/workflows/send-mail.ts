import type { MailActivities } from '../activities/send-mail.ts';
import type { SendMailInput } from '../features/mail/attempt-mail.ts';
import { activitiesOn, orGiveUp, resultOf } from './kit.ts';

/**
 * Sends an e-mail: one activity, retried for about a day. Cancel means give up. Terminate loses
 * nothing: the task in the database starts this workflow again.
 */
export async function sendMail(input: SendMailInput): Promise<string> {
  const { submitMail, giveUpMail } = activitiesOn<MailActivities>('operations', {
    startToCloseTimeout: '3 minutes',
    heartbeatTimeout: '10 seconds',
  });
  const send = async () => resultOf(await submitMail(input), 'MailFailed');
  return await orGiveUp(send, () => giveUpMail(input));
}
