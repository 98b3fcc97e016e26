import { Client, Connection } from '@temporalio/client';
import type { Config } from '../config/config.ts';
import type { DeliveryLabel } from '../database/delivery-claims.ts';
import { leaseMsFor } from '../webhooks/delivery-attempt.ts';
import { deliveryWorkflowId, startDelivery } from '../worker/dispatch/start-delivery.ts';
import { taskQueues } from '../workflows/task-queues.ts';

const CONNECT_TIMEOUT_MS = 3_000;
const START_TIMEOUT_MS = 3_000;

/**
 * Starts workflows of deliveries, for processes that run no worker. Connects when it is first used, and again when
 * that failed. `start` returns the workflow's id, and rejects when Temporal is away or refuses.
 */
export function openDeliveryStarter({ temporal, webhooks }: Pick<Config, 'temporal' | 'webhooks'>): {
  start(label: DeliveryLabel): Promise<string>;
  close(): Promise<void>;
} {
  const { address, namespace } = temporal;
  let connecting: Promise<Connection> | null = null;
  const connected = () => {
    connecting ??= Connection.connect({ address, connectTimeout: CONNECT_TIMEOUT_MS }).catch((error) => {
      connecting = null;
      throw error;
    });
    return connecting;
  };
  return {
    start: async (label) => {
      const connection = await connected();
      const client = new Client({ connection, namespace });
      const taskQueue = taskQueues(temporal.taskQueuePrefix).deliveries;
      const tools = { client, taskQueue, leaseMs: leaseMsFor(webhooks.timeoutMs), eager: false };
      await connection.withDeadline(Date.now() + START_TIMEOUT_MS, () => startDelivery(tools, label));
      return deliveryWorkflowId(label);
    },
    close: async () => {
      const connection = await connecting?.catch(() => null);
      await connection?.close();
    },
  };
}
