import { type Client, WorkflowIdConflictPolicy, WorkflowIdReusePolicy } from '@temporalio/client';
import type { Database } from '../database/database.ts';
import { returnTasks, takeDueTasks, type WorkflowTask } from '../database/workflow-tasks.ts';
import { searchAttributes } from '../workflows/search-attributes.ts';
import type { Logger } from './logger.ts';
import { type Loop, startLoop } from './loop.ts';

export type WorkflowStarterTools = {
  database: Database;
  client: Client;
  taskQueue: string;
  logger: Logger;
};

const BATCH = 50;
const POLL_MS = 250;

/** Starts the workflows that intake and API asked for (media, orders, sends), and again those whose task still stands later. */
export function startWorkflowStarter(tools: WorkflowStarterTools): Loop {
  return startLoop({
    name: 'workflow-starter',
    pollMs: POLL_MS,
    logger: tools.logger,
    turn: async () => {
      const tasks = await takeDueTasks(tools.database, BATCH);
      const starts = await Promise.allSettled(tasks.map((task) => startTask(tools, task)));
      const failed = tasks.filter((_, index) => starts[index]?.status === 'rejected');
      if (failed.length > 0)
        await returnTasks(
          tools.database,
          failed.map((task) => task.workflowId),
        );
      const failure = starts.find((start) => start.status === 'rejected');
      if (failure !== undefined) throw failure.reason;
      return tasks.length === BATCH;
    },
  });
}

async function startTask(tools: WorkflowStarterTools, task: WorkflowTask): Promise<void> {
  await tools.client.workflow.start(task.workflowType, {
    taskQueue: tools.taskQueue,
    workflowId: task.workflowId,
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
    workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
    requestEagerStart: true,
    args: [task.argument],
    typedSearchAttributes: searchAttributes({ wabaId: task.wabaId, eventId: task.eventId }),
    staticSummary: SUMMARIES[task.workflowType],
  });
}

const SUMMARIES = {
  storeInboundMedia: 'fetch inbound media into the object store',
  enrichOrder: 'look up the products of an order',
  sendEndpointAlert: 'tell a tenant about its webhook endpoint',
  replayDeliveries: 'send deliveries again',
  sendMessage: 'send a message to a customer',
};
