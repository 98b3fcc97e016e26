import { mailWorkflowId, queueMail } from '../../../src/features/mail/mails.ts';
import { testSecretBox } from '../test-accounts.ts';
import { ended, type Recorded, started, waitsForRetry } from './record-deliveries.ts';
import type { RecordingStack } from './recording-stack.ts';

/** Runs of `sendMail`. */
export async function recordMails(stack: RecordingStack): Promise<Recorded> {
  const mailer = { secretBox: testSecretBox, publicUrl: 'https://gateway.example' };
  const queue = async (recipient: string) => {
    const content = { subject: 'recorded', text: 'recorded', html: '<p>recorded</p>' };
    const mail = { kind: 'invitation' as const, userId: null, recipient, ...content };
    const mailId = await stack.database.transaction((trx) => queueMail(trx, mailer, mail));
    await started(stack, mailWorkflowId(mailId));
    return mailWorkflowId(mailId);
  };
  const sent = await queue('asha@store.example');
  await ended(stack, sent);
  const refused = await queue('nobody@store.example');
  await ended(stack, refused);
  const cancelled = await queue('later@store.example');
  await waitsForRetry(stack, cancelled);
  await stack.client.workflow.getHandle(cancelled).cancel();
  await ended(stack, cancelled);
  return { 'send-mail-sent': sent, 'send-mail-refused': refused, 'send-mail-cancelled': cancelled };
}
