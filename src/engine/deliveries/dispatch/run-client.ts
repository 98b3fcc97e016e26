import type { Client } from '@temporalio/client';
import type { EventIdHash } from '../../../platform/crypto/installation-secret.ts';
import type { Logger } from '../../../platform/logger.ts';
import { startOnce, startOrReplace } from '../../../platform/temporal/start-workflow.ts';
import { NEWS_SIGNAL } from '../../../platform/temporal/workflow-options.ts';
import { ifOpen } from '../../../platform/temporal/workflow-states.ts';
import type { DeliveryLabel } from '../../queue/claim.ts';
import type { RunClient } from '../loop/delivery-runs.ts';
import type { DeliveryNews } from '../run-news.ts';
import { deliveryStart } from './start-workflows.ts';

export type RunClientTools = {
  client: Client;
  logger: Logger;
  taskQueue: string;
  leaseMs: number;
  publicUrl: string;
  eventIdHash: EventIdHash;
  /** For traces: a run was started at `startMs` (Unix time). */
  onStart: (label: DeliveryLabel, start: { startMs: number; workflowId: string }) => void;
};

export function makeRunClient(tools: RunClientTools): RunClient {
  const { client, logger, onStart } = tools;
  const startOf = async (label: DeliveryLabel, begin: { news: DeliveryNews | null; held: boolean }) => {
    const eventIdHash = await tools.eventIdHash(label.eventId);
    return deliveryStart({ ...tools, eager: true }, label, { ...begin, eventIdHash });
  };
  const signal = async (workflowId: string, news: DeliveryNews): Promise<boolean> => {
    const signalled = client.workflow.getHandle(workflowId).signal(NEWS_SIGNAL, news);
    return (await ifOpen(signalled.then(() => true))) ?? false;
  };
  return {
    async start(label, begin) {
      const start = await startOf(label, begin);
      const startMs = Date.now();
      if ((await startOnce(client, start)) === 'running') return false;
      onStart(label, { startMs, workflowId: start.options.workflowId });
      return true;
    },

    end: signal,

    async wait(label, news) {
      // Its run did not come for the attempt: it may be lost, or unable to go on.
      const start = await startOf(label, { news, held: false });
      const answer = await startOrReplace({ client, logger, ...start });
      if (answer === 'running') await signal(start.options.workflowId, news);
    },

    async cancel(workflowId) {
      await ifOpen(client.workflow.getHandle(workflowId).cancel());
    },
  };
}
