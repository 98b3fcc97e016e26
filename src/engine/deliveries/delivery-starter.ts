import type { Config } from '../../platform/config/config.ts';
import { ownEventIdsOnly } from '../../platform/crypto/installation-secret.ts';
import { leaseMsFor } from '../../platform/lease-clock.ts';
import type { TemporalConnection } from '../../platform/temporal/client-connection.ts';
import { START_WITHIN_MS, startOnce } from '../../platform/temporal/start-workflow.ts';
import { taskQueues } from '../../platform/temporal/workflow-options.ts';
import type { DeliveryLabel } from '../queue/claim.ts';
import { deliveryStart } from './dispatch/start-workflows.ts';

/**
 * Starts workflows of test events, for processes that run no worker. Returns the workflow's id, and rejects when Temporal
 * is away or refuses.
 */
export function makeDeliveryStart(
  config: Pick<Config, 'temporal' | 'webhooks' | 'api'>,
  temporal: TemporalConnection,
): (label: DeliveryLabel) => Promise<string> {
  const tools = {
    taskQueue: taskQueues(config.temporal.taskQueuePrefix).deliveries,
    leaseMs: leaseMsFor(config.webhooks.timeoutMs),
    eager: false,
    publicUrl: config.api.publicUrl,
  };
  return async (label) => {
    const eventIdHash = await ownEventIdsOnly(label.eventId);
    const start = deliveryStart(tools, label, { eventIdHash, news: null, held: false });
    await temporal.use(START_WITHIN_MS, (client) => startOnce(client, start));
    return start.options.workflowId;
  };
}
