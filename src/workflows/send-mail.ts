import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  workflowInfo,
} from '@temporalio/workflow';
import type { MailActivities, MailEnd } from '../activities/send-mail.ts';
import type { SendMailInput } from '../mail/attempt-mail.ts';
import { LOST_WORKER_RETRY, queuesBeside } from '../platform/temporal/workflow-options.ts';

/**
 * Sends an e-mail: one activity, retried for about a day. Cancel means give up. Terminate loses
 * nothing: the task in the database starts this workflow again.
 */
export async function sendMail(input: SendMailInput): Promise<string> {
  const { submitMail, giveUpMail } = proxyActivities<MailActivities>({
    taskQueue: queuesBeside(workflowInfo().taskQueue).operations,
    startToCloseTimeout: '3 minutes',
    heartbeatTimeout: '10 seconds',
    retry: LOST_WORKER_RETRY,
  });
  try {
    return resultOf(await submitMail(input));
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return await CancellationScope.nonCancellable(() => giveUpMail(input));
  }
}

/** An e-mail that no server took is a failed workflow, so that operators find it by its status. */
function resultOf({ failed, summary }: MailEnd): string {
  if (failed) throw ApplicationFailure.create({ message: summary, type: 'MailFailed', nonRetryable: true });
  return summary;
}
