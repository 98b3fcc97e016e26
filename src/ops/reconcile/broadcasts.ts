import { listUnfinished, noteForgottenMessage, pendingAmong } from '../../features/messages/restored.ts';
import { taskQueues } from '../../platform/temporal/workflow-options.ts';
import { type ListedWorkflow, listWorkflows } from '../../platform/temporal/workflow-states.ts';
import type { Look, ReconcileTools, Tally } from './findings.ts';
import { mayBeOut } from './sent-messages.ts';

const PAGE = 200;
const LIST_MS = 30 * 60_000;

/** Before runs without a row are terminated: what they were doing says whether their message may be out. */
export const BROADCAST_LOOK: Look = {
  kind: 'recipient_already_sent',
  what: 'recipients of broadcasts without a message whose message Temporal has as sent',
  remedy: 'noted as unknown: they get no second message',
  run: lookAtRecipients,
};

async function lookAtRecipients(tools: ReconcileTools, tally: Tally): Promise<void> {
  for (const { broadcastId, wabaId } of await listUnfinished(tools.database)) {
    for (const { run, recipientId } of await forgottenRuns(tools, { broadcastId, wabaId })) {
      if (!(await mayBeOut(tools, run.workflowId, run.state))) continue;
      if (tools.fix) await noteForgottenMessage(tools.database, { broadcastId, recipientId });
      tally.found(`broadcast/${broadcastId}, recipient ${recipientId}: ${run.workflowId}`, tools.fix);
    }
  }
}

type ForgottenRun = { run: ListedWorkflow; recipientId: string };

/** Of messages to recipients of a broadcast who have none in the database. */
async function forgottenRuns(
  { database, temporal, config }: ReconcileTools,
  { broadcastId, wabaId }: { broadcastId: string; wabaId: string },
): Promise<ForgottenRun[]> {
  const queue = taskQueues(config.temporal.taskQueuePrefix).deliveries;
  const query = `TaskQueue = "${queue}" AND WorkflowType = "sendMessage" AND HeliographWabaId = "${wabaId}"`;
  return await temporal.use(LIST_MS, async (client) => {
    const forgotten: ForgottenRun[] = [];
    for await (const group of listWorkflows(client, query, PAGE)) {
      const own = group.flatMap((run) =>
        run.memo.broadcastId === broadcastId ? [{ run, recipientId: String(run.memo.recipientId) }] : [],
      );
      const ids = own.map(({ recipientId }) => recipientId);
      const pending = ids.length === 0 ? new Set() : await pendingAmong(database, broadcastId, ids);
      forgotten.push(...own.filter(({ recipientId }) => pending.has(recipientId)));
    }
    return forgotten;
  });
}
