import { attemptMail, type MailActivityTools, type SendMailInput } from '../mail/attempt-mail.ts';
import { recordMail } from '../mail/mails.ts';
import { awaitingDatabase, notYet, withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type MailActivities = ReturnType<typeof makeMailActivities>;

export type MailEnd = { failed: boolean; summary: string };

/** 10 s, 1 min, 5 min, 15 min, 1 h, 3 h, 6 h, 12 h: mail servers are down for a day at most. */
const MAIL_SCHEDULE_MS = [10, 60, 300, 900, 3_600, 10_800, 21_600, 43_200].map((seconds) => seconds * 1_000);

export function makeMailActivities({ mailScheduleMs = MAIL_SCHEDULE_MS, ...tools }: MailActivityTools) {
  return {
    /** Sends the e-mail until the mail server takes it or the schedule ends. */
    async submitMail(input: SendMailInput): Promise<MailEnd> {
      const attempt = () => attemptMail(tools, mailScheduleMs, input);
      const outcome = await withHeartbeat(() => awaitingDatabase('NotYetSent', attempt));
      if (outcome.state !== 'waiting')
        return { failed: outcome.state === 'failed', summary: outcome.summary };
      const next = new Date(Date.now() + outcome.delayMs).toISOString();
      throw notYet('NotYetSent', `${outcome.summary} Next at ${next}.`, outcome.delayMs);
    },

    async giveUpMail({ mailId }: SendMailInput): Promise<string> {
      const error = 'given up: the workflow was cancelled';
      await awaitingDatabase('NotYetSent', () =>
        recordMail(tools.database, mailId, { state: 'failed', attempted: false, error }),
      );
      return error;
    },
  };
}
