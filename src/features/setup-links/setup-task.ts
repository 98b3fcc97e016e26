import type { Transaction } from '../../platform/postgres/database.ts';
import { publicSetupId } from '../../platform/public-ids.ts';
import { insertWorkflowTasks, type TaskKind, wakeTask } from '../../platform/temporal/workflow-tasks.ts';
import { broughtWaba, type SetupLink } from './setup-link-store.ts';

export const SET_UP_NUMBER: TaskKind = {
  workflowType: 'setUpNumber',
  summary: 'a number that is being connected by a set-up link',
  isSignalled: true,
};

export function setUpWorkflowId(id: string): string {
  return `setUp/${publicSetupId(id)}`;
}

/** Has the workflow go on, from a transaction that gave it something to do: it is started, or one that waits is signalled. */
export async function goOn(trx: Transaction, link: SetupLink): Promise<void> {
  const { id } = link;
  const workflowId = setUpWorkflowId(id);
  const task = {
    workflowId,
    kind: SET_UP_NUMBER,
    wabaId: broughtWaba(link) ?? '',
    eventId: publicSetupId(id),
    argument: { setupLinkId: id },
  };
  await insertWorkflowTasks(trx, [task]);
  await wakeTask(trx, workflowId);
}
