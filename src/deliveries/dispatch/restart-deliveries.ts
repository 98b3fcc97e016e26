import type { Client } from '@temporalio/client';
import type { Logger } from '../../platform/logger.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { publicDeliveryId } from '../../platform/public-ids.ts';
import { type StartAnswer, startOrReplace } from '../../platform/temporal/start-or-replace.ts';
import { recordWorkflow } from '../delivery-log.ts';
import {
  type DeliveryLabel,
  type DeliveryPlace,
  deliveryWorkflowId,
  labelDeliveries,
} from '../queue/delivery-label.ts';
import type { Overdue } from '../queue/overdue.ts';
import { dropUnsendable } from '../queue/remove.ts';
import { deliveryStart } from './start-delivery.ts';

export type StartTools = {
  client: Client;
  database: Database;
  logger: Logger;
  taskQueue: string;
  leaseMs: number;
};

export type Restarts = {
  /** Their workflows could not be started. */
  failed: readonly DeliveryLabel[];
  /** How many were taken out of the queue: their event or endpoint is gone. */
  dropped: number;
  /** Why starts failed; null when none did. */
  failure: Error | null;
};

/**
 * Starts the workflows of overdue deliveries again. One that runs is trusted, unless it cannot go on: then it is
 * replaced. A failure is left to the caller to throw, so that it waits before it tries again: Temporal is away or refuses.
 */
export async function restartDeliveries(tools: StartTools, overdue: readonly Overdue[]): Promise<Restarts> {
  if (overdue.length === 0) return { failed: [], dropped: 0, failure: null };
  const labels = await labelDeliveries(tools.database, overdue);
  const overdueMs = new Map(overdue.map((delivery) => [delivery.deliveryId, delivery.overdueMs]));
  const answers = await Promise.all(
    labels.map((label) => tryStart(tools, label, overdueMs.get(label.deliveryId) ?? 0)),
  );
  const failed = labels.filter((_, index) => answers[index] instanceof Error);
  const carried = labels
    .filter((label) => !failed.includes(label))
    .map((label) => ({ ...label, workflowId: deliveryWorkflowId(label) }));
  await recordWorkflow(tools.database, carried);
  const dropped = await dropUnlabelled(tools, overdue, labels);
  return { failed, dropped, failure: answers.find((answer) => answer instanceof Error) ?? null };
}

async function tryStart(
  { client, logger, ...tools }: StartTools,
  label: DeliveryLabel,
  overdueMs: number,
): Promise<StartAnswer | Error> {
  const options = deliveryStart({ ...tools, eager: true }, label);
  try {
    return await startOrReplace({ client, logger, workflowType: 'deliverEvent', options, overdueMs });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** What has no label has no event or no endpoint: left alone, it would use up its endpoint's share for ever. */
async function dropUnlabelled(
  { database, logger }: StartTools,
  deliveries: readonly DeliveryPlace[],
  labels: readonly DeliveryLabel[],
): Promise<number> {
  if (labels.length === deliveries.length) return 0;
  const labelled = new Set(labels.map(({ deliveryId }) => deliveryId));
  const others = deliveries.map(({ deliveryId }) => deliveryId).filter((id) => !labelled.has(id));
  const dropped = await dropUnsendable(database, others);
  const ids = dropped.map(publicDeliveryId);
  if (ids.length > 0)
    logger.info({ deliveries: ids }, 'taken out of the queue: their event or endpoint no longer exists');
  return ids.length;
}
