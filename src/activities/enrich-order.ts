import { ApplicationFailure } from '@temporalio/common';
import type { Logger } from 'pino';
import {
  type EnrichOrderInput,
  enrichAndRelease,
  type ReleaseOrderTools,
} from '../features/messages/orders/release-order.ts';
import { awaitingDatabase, unexpectedFailure } from '../platform/temporal/activity-kit.ts';

export type EnrichOrderActivities = ReturnType<typeof makeEnrichOrderActivities>;

type EnrichOrderTools = ReleaseOrderTools & { logger: Pick<Logger, 'warn'> };

/** After a failure that operators should look at. */
const RETRY_MS = 5_000;

export function makeEnrichOrderActivities(tools: EnrichOrderTools) {
  return {
    /** Looks products up for at most 5 seconds and releases the event; repeated only while the database is away. */
    async enrichAndReleaseOrder(input: EnrichOrderInput): Promise<string> {
      try {
        return await awaitingDatabase('NotYetReleased', () => enrichAndRelease(tools, input));
      } catch (error) {
        if (error instanceof ApplicationFailure) throw error;
        tools.logger.warn({ err: error, ...input }, 'order enrichment: unexpected failure');
        throw unexpectedFailure(error instanceof Error ? error.message : 'unknown failure', RETRY_MS);
      }
    },
  };
}
