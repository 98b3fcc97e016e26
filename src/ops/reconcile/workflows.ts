import { setTimeout } from 'node:timers/promises';
import { deliveryIdOfWorkflow } from '../../engine/queue/claim.ts';
import { findOpenDeliveries } from '../../engine/queue/sweep.ts';
import { endSentMessage } from '../../features/messages/restored.ts';
import { taskQueues } from '../../platform/temporal/workflow-options.ts';
import {
  findLasting,
  type ListedWorkflow,
  listWorkflows,
  readWorkflowStates,
  terminateRun,
  type WorkflowState,
} from '../../platform/temporal/workflow-states.ts';
import { findTasks, listStartedTasks, wakeTask } from '../../platform/temporal/workflow-tasks.ts';
import { BROADCAST_LOOK } from './broadcasts.ts';
import type { Look, ReconcileTools, Tally } from './findings.ts';
import { mayBeOut } from './sent-messages.ts';

const PAGE = 200;
const CALL_MS = 60_000;

const LIST_MS = 30 * 60_000;

/** What was sent already is ended before tasks are woken. */
export const WORKFLOW_LOOKS: readonly Look[] = [
  {
    kind: 'send_already_made',
    what: 'pending messages that Temporal has as sent',
    remedy: 'ended as unknown: they are not sent twice',
    run: lookAtSends,
  },
  BROADCAST_LOOK,
  {
    kind: 'task_without_workflow',
    what: 'pending work (media, orders, sends, replays, key requests, erasures, alerts, numbers) whose workflow does not run',
    remedy: 'woken: a worker starts the workflow again',
    run: lookAtTasks,
  },
  {
    kind: 'workflow_without_row',
    what: 'workflows that run and whose rows are gone',
    remedy: 'terminated',
    run: lookAtWorkflows,
  },
];

type StartedTask = Awaited<ReturnType<typeof listStartedTasks>>[number];

/** They may have been started. */
async function* startedTasks({ database, temporal, taskKinds }: ReconcileTools) {
  for (let after: string | null = ''; after !== null; ) {
    const page: StartedTask[] = await listStartedTasks(database, taskKinds, after, PAGE);
    const ids = page.map(({ workflowId }) => workflowId);
    const states = await temporal.use(CALL_MS, (client) => readWorkflowStates(client, ids));
    for (const task of page) yield { task, state: states.get(task.workflowId) ?? 'none' };
    after = page.length < PAGE ? null : (page.at(-1)?.workflowId ?? null);
  }
}

async function lookAtSends(tools: ReconcileTools, tally: Tally): Promise<void> {
  for await (const one of startedTasks(tools)) {
    if (!(await wasSent(tools, one))) continue;
    const { workflowId, argument } = one.task;
    const { wabaId = '', messageId = '' } = argument;
    if (tools.fix) await endSentMessage(tools.database, { wabaId, messageId });
    tally.found(workflowId, tools.fix);
  }
}

/** After a restore nothing runs, and what a run was at when its worker ended was begun after the restored moment. */
async function wasSent(
  tools: ReconcileTools,
  { task: { workflowType, workflowId, argument }, state }: { task: StartedTask; state: WorkflowState },
): Promise<boolean> {
  if (workflowType !== 'sendMessage' || (state === 'running' && !tools.rewound)) return false;
  // Who sends many sends them itself, so that most have no run.
  if (state === 'none') return tools.rewound && (await mayBeOutWithOthers(tools, argument));
  return await mayBeOut(tools, workflowId, state);
}

async function mayBeOutWithOthers(
  tools: ReconcileTools,
  { broadcastId, momentId }: Record<string, string>,
): Promise<boolean> {
  if (momentId === undefined) return broadcastId !== undefined;
  const states = await tools.temporal.use(CALL_MS, (client) => readWorkflowStates(client, [momentId]));
  return await mayBeOut(tools, momentId, states.get(momentId) ?? 'none');
}

async function lookAtTasks(tools: ReconcileTools, tally: Tally): Promise<void> {
  const unrun: StartedTask[] = [];
  for await (const one of startedTasks(tools)) {
    if (one.state === 'running') continue;
    // The look before counts what was sent, and the starter comes to tasks without a start.
    if (one.task.starts > 0 && !(await wasSent(tools, one))) unrun.push(one.task);
  }
  for (const { workflowId } of await stillUnrun(tools, unrun)) {
    if (tools.fix) await tools.database.transaction((trx) => wakeTask(trx, workflowId));
    tally.found(workflowId, tools.fix);
  }
}

/** The starter has taken a task a moment before its run is there: on a busy machine, seconds before. */
const BEGINNING_MS = 5_000;

async function stillUnrun(
  { database, temporal }: ReconcileTools,
  tasks: readonly StartedTask[],
): Promise<readonly StartedTask[]> {
  if (tasks.length === 0) return [];
  await setTimeout(BEGINNING_MS);
  const ids = tasks.map(({ workflowId }) => workflowId);
  const open = await findTasks(database, ids);
  const states = await temporal.use(CALL_MS, (client) => readWorkflowStates(client, ids));
  return tasks.filter(({ workflowId }) => open.has(workflowId) && states.get(workflowId) !== 'running');
}

const REASON = 'heliograph-server reconcile: the row of this workflow is gone';

async function lookAtWorkflows(tools: ReconcileTools, tally: Tally): Promise<void> {
  const { temporal, config, fix } = tools;
  const queue = taskQueues(config.temporal.taskQueuePrefix).deliveries;
  const query = `TaskQueue = "${queue}" AND ExecutionStatus = "Running"`;
  await temporal.use(LIST_MS, async (client) => {
    for await (const group of listWorkflows(client, query, PAGE)) {
      const once = await withoutRow(tools, group);
      if (once.length === 0) continue;
      const running = await findLasting(client, once, ENDING_MS);
      for (const run of await withoutRow(tools, running)) {
        tally.found(run.workflowId, fix && (await terminateRun(client, run, REASON)));
      }
    }
  });
}

/** The row of a run goes a moment before the run ends: on a busy machine, seconds before. */
const ENDING_MS = 5_000;

/** The run of a delivery that has ended may start a moment after its row is gone, to show how it ended. */
const LEAST_AGE_MS = 60_000;

async function withoutRow(
  { database, taskKinds }: ReconcileTools,
  runs: readonly ListedWorkflow[],
): Promise<ListedWorkflow[]> {
  const deliveryIds = runs.flatMap(({ workflowId }) => deliveryIdOfWorkflow(workflowId) ?? []);
  const types = new Set(taskKinds.map(({ workflowType }) => workflowType));
  const tasks = runs.filter(({ type }) => types.has(type)).map(({ workflowId }) => workflowId);
  const openDeliveries = await findOpenDeliveries(database, deliveryIds);
  const openTasks = await findTasks(database, tasks);
  return runs.filter(({ workflowId, type, startedAt }) => {
    const deliveryId = deliveryIdOfWorkflow(workflowId);
    if (deliveryId !== null)
      return !openDeliveries.has(deliveryId) && Date.now() - startedAt.getTime() > LEAST_AGE_MS;
    return types.has(type) && !openTasks.has(workflowId);
  });
}
