import { type Client, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import type { EventIdHash } from '../../../platform/crypto/installation-secret.ts';
import type { Logger } from '../../../platform/logger.ts';
import { startOrReplace } from '../../../platform/temporal/start-or-replace.ts';
import { NEWS_SIGNAL } from '../../../platform/temporal/workflow-options.ts';
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
  const optionsOf = async (label: DeliveryLabel, begin: { news: DeliveryNews | null; held: boolean }) => {
    const eventIdHash = await tools.eventIdHash(label.eventId);
    return deliveryStart({ ...tools, eager: true }, label, { ...begin, eventIdHash });
  };
  const signal = async (workflowId: string, news: DeliveryNews): Promise<boolean> => {
    try {
      await client.workflow.getHandle(workflowId).signal(NEWS_SIGNAL, news);
      return true;
    } catch (error) {
      ignoreEnded(error);
      return false;
    }
  };
  return {
    async start(label, begin) {
      const options = await optionsOf(label, begin);
      const startMs = Date.now();
      try {
        await client.workflow.start('deliverEvent', options);
      } catch (error) {
        if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
        throw error;
      }
      onStart(label, { startMs, workflowId: options.workflowId });
      return true;
    },

    end: signal,

    async wait(label, news) {
      // Its run did not come for the attempt: it may be lost, or unable to go on.
      const options = await optionsOf(label, { news, held: false });
      const answer = await startOrReplace({ client, logger, workflowType: 'deliverEvent', options });
      if (answer === 'running') await signal(options.workflowId, news);
    },

    async cancel(workflowId) {
      await client.workflow.getHandle(workflowId).cancel().catch(ignoreEnded);
    },
  };
}

/** A run that has ended needs no report. */
export function ignoreEnded(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}
