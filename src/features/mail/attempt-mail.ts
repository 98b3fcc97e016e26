import { openOrNull, type SecretBox } from '../../platform/crypto/secret-box.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { nextDelayMs } from '../../platform/retry-schedule.ts';
import type { SendingAttempt } from '../../platform/temporal/activity-kit.ts';
import { findMail, MAIL_CONTENT, type MailContent, type MailToSend, recordMail } from './mails.ts';
import type { MailOutcome, MailSender } from './smtp.ts';

export type SendMailInput = { mailId: string };

export type MailActivityTools = {
  database: Database;
  secretBox: SecretBox;
  /** Null: the installation sends no e-mail (any more). */
  mailSender: MailSender | null;
  /** Waits in ms between attempts; after the last one the e-mail has failed. */
  mailScheduleMs?: readonly number[];
};

export async function attemptMail(
  tools: Omit<MailActivityTools, 'mailScheduleMs'>,
  schedule: readonly number[],
  { mailId }: SendMailInput,
): Promise<SendingAttempt> {
  const { database, mailSender } = tools;
  const mail = await findMail(database, mailId);
  if (mail === null) return await end(database, mailId, 'There is no such e-mail any more.');
  if (mail.contentSealed === null) return { state: 'sent', summary: 'It was settled before.' };
  if (mailSender === null) return await end(database, mailId, 'HELIOGRAPH_SMTP_URL is not set any more.');
  const outcome = await send(tools.secretBox, mailSender, mailId, mail);
  if (outcome.kind === 'sent') {
    await recordMail(database, mailId, { state: 'sent', attempted: true, error: null });
    return { state: 'sent', summary: `Sent at attempt ${mail.attempts + 1}: ${outcome.reply}` };
  }
  const { reason } = outcome;
  const attemptsMade = mail.attempts + 1;
  const delayMs =
    outcome.kind === 'refused'
      ? null
      : nextDelayMs({ schedule, attemptsMade, retryAfterMs: null, random: Math.random });
  if (delayMs === null) {
    await recordMail(database, mailId, { state: 'failed', attempted: true, error: reason });
    return { state: 'failed', summary: `Given up at attempt ${attemptsMade}: ${reason}` };
  }
  await recordMail(database, mailId, { state: 'waiting', attempted: true, error: reason });
  return { state: 'waiting', summary: `Attempt ${attemptsMade}: ${reason}.`, delayMs };
}

async function end(database: Database, mailId: string, reason: string): Promise<SendingAttempt> {
  await recordMail(database, mailId, { state: 'failed', attempted: false, error: reason });
  return { state: 'failed', summary: reason };
}

async function send(
  secretBox: SecretBox,
  sender: MailSender,
  mailId: string,
  { recipient, contentSealed }: MailToSend,
): Promise<MailOutcome> {
  const text = openOrNull(secretBox, contentSealed ?? '', MAIL_CONTENT.place(mailId));
  if (text === null)
    return { kind: 'failed', reason: 'its content cannot be read (HELIOGRAPH_ENCRYPTION_KEYS)' };
  return await sender.send({ id: mailId, recipient, ...(JSON.parse(text) as MailContent) });
}
