import { proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { EraseActivities, EraseInput } from '../activities/erase.ts';
import { LOST_WORKER_RETRY, queuesBeside } from '../platform/temporal/workflow-options.ts';

function activities(): EraseActivities {
  return proxyActivities<EraseActivities>({
    taskQueue: queuesBeside(workflowInfo().taskQueue).operations,
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: '10 seconds',
    retry: LOST_WORKER_RETRY,
    summary: 'erase batch after batch',
  });
}

/**
 * Erases one subject: rows, bodies, files.
 *
 *   eraseData: one activity; retried while it waits (for an attempt under way, the object store) and every 15 s
 *        │ done ─▶ the signed report is in the database
 *
 * Cancel and terminate lose nothing: until it is done, the task in the database starts this workflow again.
 */
async function erase({ erasureId }: EraseInput): Promise<string> {
  setCurrentDetails(
    `**Erasure ${erasureId}.** The pending activity shows how far it is. ` +
      `\`admin erasures show ${erasureId}\` shows what went, once it is done.`,
  );
  const { erased } = await activities().eraseData({ erasureId });
  const summary = `Done: ${erased} rows and files erased.`;
  setCurrentDetails(`**Erasure ${erasureId}.** ${summary}`);
  return summary;
}

/** A customer of a WABA. */
export async function eraseCustomer(input: EraseInput): Promise<string> {
  return await erase(input);
}

/** A conversation of a number with a customer or a group. */
export async function eraseConversation(input: EraseInput): Promise<string> {
  return await erase(input);
}

/** A WABA with everything that came through it. */
export async function eraseWaba(input: EraseInput): Promise<string> {
  return await erase(input);
}

/** A tenant with its WABAs and the users that belong nowhere else. */
export async function eraseTenant(input: EraseInput): Promise<string> {
  return await erase(input);
}

/** A user of the portal. */
export async function eraseUser(input: EraseInput): Promise<string> {
  return await erase(input);
}
