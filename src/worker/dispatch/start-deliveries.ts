import type { Database } from '../../database/database.ts';
import { recordWorkflow } from '../../database/deliveries.ts';
import { type HandedOver, labelDeliveries } from '../../database/delivery-claims.ts';
import { type DeliveryStarter, deliveryWorkflowId, startDelivery } from './start-delivery.ts';

/**
 * Starts a workflow for each delivery. Those whose start fails are given to `giveBack`, and the failure is thrown:
 * Temporal is away, so the caller waits before it tries again.
 */
export async function startDeliveries(
  tools: Omit<DeliveryStarter, 'eager'> & { database: Database },
  deliveries: readonly HandedOver[],
  giveBack: (deliveryIds: string[]) => Promise<void>,
): Promise<void> {
  if (deliveries.length === 0) return;
  const labels = await labelDeliveries(tools.database, deliveries);
  const starts = await Promise.allSettled(
    labels.map((label) => startDelivery({ ...tools, eager: true }, label)),
  );
  const failed = labels.filter((_, index) => starts[index]?.status === 'rejected');
  if (failed.length > 0) await giveBack(failed.map((label) => label.deliveryId));
  const started = labels.filter((_, index) => starts[index]?.status === 'fulfilled');
  await recordWorkflow(
    tools.database,
    started.map((label) => ({ ...label, workflowId: deliveryWorkflowId(label) })),
  );
  const failure = starts.find((start) => start.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}
