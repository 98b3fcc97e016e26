import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { eventually } from './webhook-receiver.ts';

/** Presses *Reset* of the Temporal UI, to the first event that it offers; returns the id of the new run. */
export async function resetRun(client: Client, workflowId: string): Promise<string> {
  const { runId } = await client.workflow.getHandle(workflowId).describe();
  const firstTask = async () => {
    const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    return events?.find((event) => event.workflowTaskCompletedEventAttributes)?.eventId ?? null;
  };
  await eventually('it has done a workflow task', async () => (await firstTask()) !== null);
  const { runId: newRunId } = await client.workflowService.resetWorkflowExecution({
    namespace: client.options.namespace,
    workflowExecution: { workflowId, runId },
    workflowTaskFinishEventId: await firstTask(),
    reason: 'as an operator does',
    requestId: randomUUID(),
  });
  return newRunId;
}

/** Presses *Pause* of the pending activity of a run. */
export async function pauseActivity(client: Client, workflowId: string): Promise<void> {
  await client.workflowService.pauseActivity(await pendingActivity(client, workflowId));
}

/** Presses *Unpause*. */
export async function unpauseActivity(client: Client, workflowId: string): Promise<void> {
  await client.workflowService.unpauseActivity(await pendingActivity(client, workflowId));
}

async function pendingActivity(client: Client, workflowId: string) {
  const { runId, raw } = await client.workflow.getHandle(workflowId).describe();
  const [pending] = raw.pendingActivities ?? [];
  if (pending?.activityId == null) throw new Error(`${workflowId} has no pending activity`);
  return {
    namespace: client.options.namespace,
    execution: { workflowId, runId },
    id: pending.activityId,
    identity: 'operator',
  };
}
