import {
  listUnfinished,
  noteForgottenMessage,
  pendingAmong,
  pendingUpTo,
} from '../../features/messages/restored.ts';
import { SENT_UP_TO, taskQueues } from '../../platform/temporal/workflow-options.ts';
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
  for (const { broadcastId, wabaId, workflowId } of await listUnfinished(tools.database)) {
    if (tools.rewound) await lookAtParts(tools, tally, { broadcastId, workflowId });
    for (const { run, recipientId } of await forgottenRuns(tools, { broadcastId, wabaId })) {
      if (!(await mayBeOut(tools, run.workflowId, run.state))) continue;
      if (tools.fix) await noteForgottenMessage(tools.database, { broadcastId, recipientId });
      tally.found(`broadcast/${broadcastId}, recipient ${recipientId}: ${run.workflowId}`, tools.fix);
    }
  }
}

/** What its runs had begun to send when they stopped: the database is behind them, so each of these may have a message. */
async function lookAtParts(
  tools: ReconcileTools,
  tally: Tally,
  { broadcastId, workflowId }: { broadcastId: string; workflowId: string },
): Promise<void> {
  const { database, temporal, fix } = tools;
  let upTo = 0n;
  await temporal.use(LIST_MS, async (client) => {
    for await (const runs of listWorkflows(client, `WorkflowId = "${workflowId}"`, PAGE))
      for (const { memo } of runs) {
        const end = BigInt(String(memo[SENT_UP_TO] ?? 0));
        if (end > upTo) upTo = end;
      }
  });
  for (const recipientId of await pendingUpTo(database, broadcastId, String(upTo))) {
    if (fix) await noteForgottenMessage(database, { broadcastId, recipientId });
    tally.found(`${workflowId}, recipient ${recipientId}: all up to ${upTo} were begun`, fix);
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
