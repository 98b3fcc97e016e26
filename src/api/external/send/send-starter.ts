import type { Client, Connection } from '@temporalio/client';
import type { FastifyBaseLogger } from 'fastify';
import type { Config } from '../../../config/config.ts';
import type { Database } from '../../../database/database.ts';
import { returnTasks } from '../../../database/workflow-tasks.ts';
import { searchAttributes } from '../../../workflows/search-attributes.ts';
import type { sendMessage } from '../../../workflows/send-message.ts';
import { taskQueues } from '../../../workflows/task-queues.ts';
import { sendTask } from './queue-message.ts';

const START_TIMEOUT_MS = 3_000;

export type SendStarter = {
  /** Starts the workflow of a stored message; when Temporal is away, the worker does so as soon as it is back. */
  start(wabaId: string, messageId: string): Promise<void>;
  close(): Promise<void>;
};

/** Starts workflows from the API process. Temporal is connected to with the first message, and need not be there. */
export function createSendStarter(
  { temporal }: Pick<Config, 'temporal'>,
  database: Database,
  log: Pick<FastifyBaseLogger, 'warn'>,
): SendStarter {
  let opened: Promise<{ client: Client; connection: Connection }> | null = null;
  const open = async () => {
    // With the first message: an API that sends none does not pay for the client.
    const { Client, Connection } = await import('@temporalio/client');
    const connection = Connection.lazy({ address: temporal.address });
    return { connection, client: new Client({ connection, namespace: temporal.namespace }) };
  };
  const taskQueue = taskQueues(temporal.taskQueuePrefix).deliveries;
  return {
    start: async (wabaId, messageId) => {
      const { workflowId, argument } = sendTask(wabaId, messageId);
      try {
        opened ??= open();
        const { client, connection } = await opened;
        await connection.withDeadline(Date.now() + START_TIMEOUT_MS, () =>
          client.workflow.start<typeof sendMessage>('sendMessage', {
            taskQueue,
            workflowId,
            workflowIdConflictPolicy: 'USE_EXISTING',
            args: [argument],
            typedSearchAttributes: searchAttributes({ wabaId, eventId: messageId }),
            staticSummary: 'send a message to a customer',
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
    close: async () => {
      await (await opened?.catch(() => undefined))?.connection.close();
    },
  };
}
