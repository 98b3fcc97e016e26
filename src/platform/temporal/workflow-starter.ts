import type { Client } from '@temporalio/client';
import type { EventIdHash } from '../crypto/installation-secret.ts';
import type { Logger } from '../logger.ts';
import { type Loop, startLoop, type WorkWatch } from '../loop.ts';
import type { Database } from '../postgres/database.ts';
import type { TemporalConnection } from './client-connection.ts';
import {
  START_WITHIN_MS,
  STARTS_AT,
  startOnce,
  startOrReplace,
  type WorkflowStart,
} from './start-workflow.ts';
import { searchAttributes } from './workflow-options.ts';
import {
  HAS_TASK,
  returnTasks,
  type TakenTask,
  type TaskKind,
  takeDueTasks,
  type WorkflowTask,
} from './workflow-tasks.ts';

export type WorkflowStarterTools = {
  database: Database;
  client: Client;
  taskQueue: string;
  logger: Logger;
  eventIdHash: EventIdHash;
  kinds: readonly TaskKind[];
  standsAside?: () => boolean;
  workWatch?: WorkWatch;
};

const BATCH = 50;

/** Starts the workflows that rooms asked for, again while their task stands; a run that cannot go on is replaced. */
export function startWorkflowStarter(tools: WorkflowStarterTools): Loop {
  const kinds = new Map(tools.kinds.map((kind) => [kind.workflowType, kind]));
  return startLoop({
    name: 'workflow-starter',
    logger: tools.logger,
    standsAside: tools.standsAside,
    work: { watch: tools.workWatch, hasWork: HAS_TASK },
    turn: async () => {
      const tasks = await takeDueTasks(tools.database, tools.kinds, BATCH);
      const starts = await Promise.allSettled(
        tasks.map((task) => startTask(tools, task, kinds.get(task.workflowType))),
      );
      const failed = tasks.filter((_, index) => starts[index]?.status === 'rejected');
      const failedIds = failed.map(({ workflowId }) => workflowId);
      if (failedIds.length > 0) await returnTasks(tools.database, failedIds);
      const failure = starts.find((start) => start.status === 'rejected');
      if (failure !== undefined) throw failure.reason;
      return tasks.length >= BATCH;
    },
  });
}

async function startTask(
  { client, taskQueue, logger, eventIdHash }: WorkflowStarterTools,
  task: TakenTask,
  kind: TaskKind | undefined,
): Promise<void> {
  const isPublic = kind?.eventType !== undefined;
  const eventId = isPublic ? await eventIdHash(task.eventId) : task.eventId;
  const { workflowType, options } = startOf(taskQueue, { ...task, eventId }, kind);
  if (kind?.isSignalled && task.starts <= SIGNALLED_STARTS) {
    const existing = { workflowIdConflictPolicy: 'USE_EXISTING' as const, signal: 'changed' };
    await client.workflow.signalWithStart(workflowType, { ...options, ...existing });
  } else {
    const eager = options.startDelay === undefined;
    await startOrReplace({ client, logger, workflowType, options: { ...options, requestEagerStart: eager } });
  }
}

/** Thousands may start in one second: what a caller waits for overtakes them. */
const BEHIND_OTHERS = { priorityKey: 4 };

/** `kind`: undefined where a newer version added the task. */
function startOf(
  taskQueue: string,
  task: Omit<TakenTask, 'starts' | 'startsInMs' | 'eventId'> & {
    eventId: string | null;
    startsInMs?: number | null;
  },
  kind: TaskKind | undefined,
): WorkflowStart {
  const { workflowId, workflowType, wabaId, tenantId, eventId, startsAt = null } = task;
  const startDelay = Math.ceil(task.startsInMs ?? 0);
  const eventType = kind?.eventType ?? null;
  const summary = task.summary ?? kind?.summary;
  const memo = memoOf(task, startsAt, kind);
  const options = {
    taskQueue,
    workflowId,
    args: [task.argument],
    typedSearchAttributes: searchAttributes({ tenantId, wabaId: wabaId || null, eventId, eventType }),
    ...(summary !== undefined && { staticSummary: summary }),
    ...(Object.keys(memo).length > 0 && { memo, priority: BEHIND_OTHERS }),
    ...(startDelay > 0 && { startDelay }),
  };
  return { workflowType, options };
}

function memoOf(
  { argument }: Pick<TakenTask, 'argument'>,
  startsAt: Date | null,
  kind: TaskKind | undefined,
): Record<string, string | undefined> {
  const listed = (kind?.listed ?? []).flatMap((name) => (name in argument ? [[name, argument[name]]] : []));
  return { ...(startsAt !== null && { [STARTS_AT]: startsAt.toISOString() }), ...Object.fromEntries(listed) };
}

export type StartTask = (task: WorkflowTask & { tenantId: string }) => Promise<void>;

/**
 * Starts the workflow of a task that was stored just now, in a process that runs no worker. While Temporal is away, it
 * leaves that to the loop. For kinds with `isStartedByItsRoom`.
 */
export function makeTaskStart(tools: {
  database: Database;
  temporal: TemporalConnection;
  taskQueue: string;
  logger: Pick<Logger, 'warn'>;
}): StartTask {
  const { database, temporal, taskQueue, logger } = tools;
  return async ({ kind, ...task }) => {
    const start = startOf(taskQueue, { ...task, workflowType: kind.workflowType }, kind);
    try {
      await temporal.use(START_WITHIN_MS, (client) => startOnce(client, start));
    } catch (error) {
      const { workflowId } = task;
      logger.warn(
        { err: error, workflowId },
        'Temporal is away: the worker starts the workflow when it is back',
      );
      await returnTasks(database, [workflowId]).catch(() => undefined);
      database.notify('heliograph_workflow_tasks');
    }
  };
}

/**
 * How often a workflow that waits for its row to change gets a signal after the task was woken. The first time is enough
 * unless this process dies in between; later ones would only fill its history.
 */
const SIGNALLED_STARTS = 2;
