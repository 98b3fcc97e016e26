import { Context } from '@temporalio/activity';
import type { ApplicationFailure } from '@temporalio/common';
import type { Logger } from 'pino';
import {
  type EnrichOrderInput,
  enrichAndRelease,
  type ReleaseOrderTools,
} from '../messages/orders/release-order.ts';
import { isTransientError } from '../platform/postgres/error-class.ts';
import { notYet, unexpectedFailure } from '../platform/temporal/activity-kit.ts';

export type EnrichOrderActivities = ReturnType<typeof makeEnrichOrderActivities>;

type EnrichOrderTools = ReleaseOrderTools & { logger: Pick<Logger, 'warn'> };

const LONGEST_DELAY_MS = 30_000;

export function makeEnrichOrderActivities(tools: EnrichOrderTools) {
  return {
    /** Looks products up for at most 5 seconds and releases the event; repeated only while the database is away. */
    async enrichAndReleaseOrder(input: EnrichOrderInput): Promise<string> {
      try {
        return await enrichAndRelease(tools, input);
      } catch (error) {
        throw retryLater(tools, input, error);
      }
    },
  };
}

function retryLater(tools: EnrichOrderTools, input: EnrichOrderInput, error: unknown): ApplicationFailure {
  const { attempt } = Context.current().info;
  const delayMs = Math.min(1_000 * 2 ** Math.min(attempt - 1, 10), LONGEST_DELAY_MS);
  const reason = error instanceof Error ? error.message : 'unknown failure';
  if (!isTransientError(error)) {
    tools.logger.warn({ err: error, ...input }, 'order enrichment: unexpected failure');
    return unexpectedFailure(reason, delayMs);
  }
  return notYet('NotYetReleased', `The database is not available: ${reason}.`, delayMs);
}
