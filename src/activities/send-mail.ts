import { attemptMail, type MailActivityTools, type SendMailInput } from '../features/mail/attempt-mail.ts';
import { recordMail } from '../features/mail/mails.ts';
import { attemptSending, giveUpSending, type SendingEnd } from '../platform/temporal/activity-kit.ts';

export type MailActivities = ReturnType<typeof makeMailActivities>;

/** 10 s, 1 min, 5 min, 15 min, 1 h, 3 h, 6 h, 12 h: mail servers are down for a day at most. */
const MAIL_SCHEDULE_MS = [10, 60, 300, 900, 3_600, 10_800, 21_600, 43_200].map((seconds) => seconds * 1_000);

export function makeMailActivities({ mailScheduleMs = MAIL_SCHEDULE_MS, ...tools }: MailActivityTools) {
  return {
    /** Sends the e-mail until the mail server takes it or the schedule ends. */
    submitMail: async (input: SendMailInput): Promise<SendingEnd> =>
      await attemptSending(() => attemptMail(tools, mailScheduleMs, input)),

    giveUpMail: async ({ mailId }: SendMailInput): Promise<string> =>
      await giveUpSending((error) =>
        recordMail(tools.database, mailId, { state: 'failed', attempted: false, error }),
      ),
  };
}
