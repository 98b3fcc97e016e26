import { setCurrentDetails } from '@temporalio/workflow';
import type { EraseActivities, EraseInput } from '../activities/erase.ts';
import { activitiesOn } from './kit.ts';

const activities = () =>
  activitiesOn<EraseActivities>('operations', {
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: '10 seconds',
    summary: 'erase batch after batch',
  });

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

export {
  erase as eraseConversation,
  erase as eraseCustomer,
  erase as eraseTenant,
  erase as eraseUser,
  erase as eraseWaba,
};
