import { Client, Connection } from '@temporalio/client';
import type { Config } from '../../config/config.ts';
import type { DeliveryLabel } from '../../database/delivery-claims.ts';
import { leaseMsFor } from '../../webhooks/delivery-attempt.ts';
import { deliveryWorkflowId, startDelivery } from '../../worker/dispatch/start-delivery.ts';
import { taskQueues } from '../../workflows/task-queues.ts';

const CONNECT_TIMEOUT_MS = 3_000;
const START_TIMEOUT_MS = 5_000;

/** Starts the workflow of one delivery and returns its id. Rejects when Temporal is away or refuses. */
export async function startDeliveryOnce(
  { temporal, webhooks }: Pick<Config, 'temporal' | 'webhooks'>,
  label: DeliveryLabel,
): Promise<string> {
  const connection = await Connection.connect({
    address: temporal.address,
    connectTimeout: CONNECT_TIMEOUT_MS,
  });
  try {
    const client = new Client({ connection, namespace: temporal.namespace });
    const taskQueue = taskQueues(temporal.taskQueuePrefix).deliveries;
    const tools = { client, taskQueue, leaseMs: leaseMsFor(webhooks.timeoutMs), eager: false };
    await connection.withDeadline(Date.now() + START_TIMEOUT_MS, () => startDelivery(tools, label));
    return deliveryWorkflowId(label);
  } finally {
    await connection.close();
  }
}
