import type { Client } from '@temporalio/client';
import type { Logger } from '../../platform/logger.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { DeliveryLoop } from '../loop/delivery-loop.ts';

/** The task queue of the one worker process whose loop is shown. */
export type DeliverSessionInput = { taskQueue: string };

/** Longer than Temporal takes to give the activity to this process. */
const LOOK_MS = 5_000;

/** Keeps `delivery-session/<worker>` open, the workflow that shows the delivery loop of this process. */
export function startSessionWorkflow(tools: {
  client: Client;
  logger: Logger;
  loop: DeliveryLoop;
  /** Host and process. */
  worker: string;
  /** Where its workflow tasks run, and where its activity, which only this process polls. */
  queues: { deliveries: string; session: string };
}): Loop {
  const { client, worker, queues } = tools;
  return startLoop({
    name: 'session-workflow',
    pollMs: LOOK_MS,
    logger: tools.logger,
    turn: async () => {
      if (tools.loop.isShown()) return false;
      await client.workflow.start<(input: DeliverSessionInput) => Promise<string>>('deliverSession', {
        taskQueue: queues.deliveries,
        workflowId: `delivery-session/${worker}`,
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        workflowIdConflictPolicy: 'USE_EXISTING',
        args: [{ taskQueue: queues.session }],
        staticSummary: `delivery loop of ${worker}`,
        staticDetails:
          'Deliveries that succeed at once mostly have no workflow of their own: this process claims, sends and records them in groups. The pending activity shows the counts. Cancel and terminate lose nothing: it is started again.',
      });
      return false;
    },
  });
}
