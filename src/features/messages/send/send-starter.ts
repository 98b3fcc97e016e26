import type { Config } from '../../../platform/config/config.ts';
import type { Logger } from '../../../platform/logger.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import type { TemporalConnection } from '../../../platform/temporal/client-connection.ts';
import { searchAttributes, taskQueues } from '../../../platform/temporal/workflow-options.ts';
import { returnTasks } from '../../../platform/temporal/workflow-tasks.ts';
import { sendMessageTask } from './send-task.ts';

const START_TIMEOUT_MS = 3_000;

export type SendStarter = {
  /** Starts the workflow of a stored message; when Temporal is away, the worker does so as soon as it is back. */
  start(account: { wabaId: string; tenantId: string }, messageId: string): Promise<void>;
};

/** Starts workflows from the API process. Temporal need not be there. */
export function createSendStarter(
  config: Pick<Config, 'temporal'>,
  temporal: TemporalConnection,
  database: Database,
  log: Pick<Logger, 'warn'>,
): SendStarter {
  const taskQueue = taskQueues(config.temporal.taskQueuePrefix).deliveries;
  return {
    start: async ({ wabaId, tenantId }, messageId) => {
      const { workflowId, argument, kind } = sendMessageTask(wabaId, messageId);
      try {
        await temporal.use(START_TIMEOUT_MS, (client) =>
          client.workflow.start(kind.workflowType, {
            taskQueue,
            workflowId,
            workflowIdConflictPolicy: 'USE_EXISTING',
            args: [argument],
            typedSearchAttributes: searchAttributes({ tenantId, wabaId, eventId: messageId }),
            staticSummary: kind.summary,
          }),
        );
      } catch (error) {
        log.warn(
          { err: error, workflowId },
          'Temporal is away: the worker starts the workflow when it is back',
        );
        await returnTasks(database, [workflowId]).catch(() => undefined);
      }
    },
  };
}
