import type { Client } from '@temporalio/client';
import type { Database } from '../../database/database.ts';
import { recordWorkflow } from '../../deliveries/log/deliveries.ts';
import { type DeliveryLabel, type HandedOver, labelDeliveries } from '../../deliveries/queue/hand-over.ts';
import { dropUnsendable } from '../../deliveries/queue/remove.ts';
import { publicDeliveryId } from '../../domain/public-ids.ts';
import type { Logger } from '../logger.ts';
import { type StartAnswer, startOrReplace } from '../start-or-replace.ts';
import { deliveryStart, deliveryWorkflowId } from './start-delivery.ts';

export type StartTools = {
  client: Client;
  database: Database;
  logger: Logger;
  taskQueue: string;
  leaseMs: number;
};

export type Caller = {
  giveBack: (deliveryIds: string[]) => Promise<void>;
  /**
   * What it means that an earlier run has not ended and can go on. `return`: it may be about to end and leave the
   * delivery to nobody, so the delivery is given back and started a moment later. `trust`: that run looks after it.
   */
  runsAlready: 'return' | 'trust';
};

export type Starts = {
  started: readonly DeliveryLabel[];
  returned: readonly DeliveryLabel[];
  /** How many were taken out of the queue: their event or endpoint is gone. */
  dropped: number;
  /** Why starts failed; null when none did. */
  failure: Error | null;
};

/** `overdueMs`: for how long its workflow has done nothing. */
type ToStart = HandedOver & { overdueMs?: number };

/**
 * Starts a workflow for each delivery. Those whose start fails are given back; the failure is left to the caller to
 * throw, so that it waits before it tries again: Temporal is away or refuses.
 */
export async function startDeliveries(
  tools: StartTools,
  deliveries: readonly ToStart[],
  { giveBack, runsAlready }: Caller,
): Promise<Starts> {
  if (deliveries.length === 0) return { started: [], returned: [], dropped: 0, failure: null };
  const labels = await labelDeliveries(tools.database, deliveries);
  const overdueMs = new Map(deliveries.map((delivery) => [delivery.deliveryId, delivery.overdueMs ?? 0]));
  const answers = await Promise.all(
    labels.map((label) => tryStart(tools, label, overdueMs.get(label.deliveryId))),
  );
  const good = ['started', 'replaced', ...(runsAlready === 'trust' ? ['running'] : [])];
  const isGood = (_: unknown, index: number) => good.some((answer) => answer === answers[index]);
  const started = labels.filter(isGood);
  const returned = labels.filter((label) => !started.includes(label));
  if (returned.length > 0) await giveBack(returned.map(({ deliveryId }) => deliveryId));
  const carried = started.map((label) => ({ ...label, workflowId: deliveryWorkflowId(label) }));
  if (carried.length > 0) await recordWorkflow(tools.database, carried);
  const dropped = await dropUnlabelled(tools, deliveries, labels);
  return { started, returned, dropped, failure: answers.find((answer) => answer instanceof Error) ?? null };
}

async function tryStart(
  { client, logger, ...tools }: StartTools,
  label: DeliveryLabel,
  overdueMs = 0,
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
  deliveries: readonly HandedOver[],
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
