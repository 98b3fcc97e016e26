import type { Config } from '../../platform/config/config.ts';
import { ownEventIdsOnly } from '../../platform/crypto/installation-secret.ts';
import {
  openTemporalConnection,
  type TemporalConnection,
} from '../../platform/temporal/client-connection.ts';
import { taskQueues } from '../../platform/temporal/workflow-options.ts';
import type { DeliveryLabel } from '../queue/claim.ts';
import { leaseMsFor } from './attempt/lease-clock.ts';
import { deliveryStart } from './dispatch/start-workflows.ts';

const START_TIMEOUT_MS = 3_000;

/**
 * Starts workflows of test events, for processes that run no worker. `start` returns the workflow's id, and rejects when
 * Temporal is away or refuses; `close` ends the connection, which the starter opens unless the caller gives one.
 */
export function openDeliveryStarter(
  config: Pick<Config, 'temporal' | 'webhooks' | 'api'>,
  temporal: TemporalConnection = openTemporalConnection(config),
): { start(label: DeliveryLabel): Promise<string>; close(): Promise<void> } {
  const tools = {
    taskQueue: taskQueues(config.temporal.taskQueuePrefix).deliveries,
    leaseMs: leaseMsFor(config.webhooks.timeoutMs),
    eager: false,
    publicUrl: config.api.publicUrl,
  };
  return {
    start: async (label) => {
      const hash = await ownEventIdsOnly(label.eventId);
      const begin = { eventIdHash: hash, news: null, held: false };
      const options = deliveryStart(tools, label, begin);
      await temporal.use(START_TIMEOUT_MS, (client) =>
        client.workflow.start('deliverEvent', { ...options, workflowIdConflictPolicy: 'USE_EXISTING' }),
      );
      return options.workflowId;
    },
    close: () => temporal.close(),
  };
}
