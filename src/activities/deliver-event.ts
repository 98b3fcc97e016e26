import { Context } from '@temporalio/activity';
import { type AttemptTools, attemptDelivery } from '../deliveries/attempt/attempt-delivery.ts';
import type { DeliverEventInput } from '../deliveries/dispatch/start-workflows.ts';
import type { AttemptOutcome } from '../deliveries/judge-outcome.ts';
import { removeDelivery } from '../deliveries/queue/remove.ts';
import { notYet, withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type DeliverEventActivities = ReturnType<typeof makeDeliverEventActivities>;

export type DeliverEventTools = AttemptTools & {
  /** What comes of the attempt that the delivery loop of this process has under way; null when it has none. */
  join: (deliveryId: string) => Promise<AttemptOutcome> | null;
  /** Called when a delivery is settled, so that the next of its lane goes out at once. */
  onSettled: () => void;
};

/** How a delivery ended: in one line, and whether for good without success. */
export type DeliveryEnd = { failed: boolean; summary: string };
export type FirstAttempt = DeliveryEnd & { settled: boolean };

/** What takes longer is to be seen as a pending activity. */
const QUICK_MS = 1_000;

/** The activities of `deliverEvent`. */
export function makeDeliverEventActivities(tools: DeliverEventTools) {
  const attempt = async (input: DeliverEventInput): Promise<AttemptOutcome> => {
    const workflowId = Context.current().info.workflowExecution?.workflowId ?? null;
    try {
      return await withHeartbeat(async () => {
        const underWay = tools.join(input.deliveryId);
        return await (underWay ?? attemptDelivery(tools, { ...input, workflowId }));
      });
    } finally {
      tools.onSettled();
    }
  };
  return {
    /**
     * What came of the attempt that this process has under way for the workflow; null when it has none, or when that
     * takes longer than a workflow task should. A local activity.
     */
    async joinAttempt(deliveryId: string): Promise<FirstAttempt | null> {
      const outcome = await Promise.race([tools.join(deliveryId), nothingAfter(QUICK_MS)]);
      return outcome === null ? null : firstAttemptOf(outcome);
    },

    /** One attempt, or the one that is under way. `settled`: nothing is left to do for this workflow. */
    async attemptDelivery(input: DeliverEventInput): Promise<FirstAttempt> {
      return firstAttemptOf(await attempt(input));
    },

    /** Attempts until the delivery is settled; each failure carries the wait until the next attempt. */
    async retryDelivery(input: DeliverEventInput): Promise<DeliveryEnd> {
      const outcome = await attempt(input);
      const delayMs = delayOf(outcome);
      if (delayMs === null) return endOf(outcome);
      throw notYet('NotYetDelivered', summaryOf(outcome), delayMs);
    },

    /** Fails a delivery because its workflow was cancelled; waits for an attempt that is under way. */
    async giveUpDelivery(input: DeliverEventInput): Promise<string> {
      const outcome = await tools.database.transaction((trx) =>
        removeDelivery(trx, input.deliveryId, 'given up: the workflow was cancelled'),
      );
      if (outcome === 'claimed') throw notYet('NotYetDelivered', 'an attempt is under way', 2_000);
      tools.onSettled();
      return outcome === 'removed' ? 'given up' : 'settled before it was given up';
    },
  };
}

/** How long to wait for the next attempt, in ms; null when there is none to wait for. */
function delayOf(outcome: AttemptOutcome): number | null {
  if (outcome.state === 'retrying') return outcome.byWorkflow ? outcome.delayMs : null;
  return outcome.state === 'waiting' ? outcome.delayMs : null;
}

function firstAttemptOf(outcome: AttemptOutcome): FirstAttempt {
  return { settled: delayOf(outcome) === null, ...endOf(outcome) };
}

function endOf(outcome: AttemptOutcome): DeliveryEnd {
  return { failed: outcome.state === 'failed', summary: summaryOf(outcome) };
}

/** One line for operators. */
function summaryOf(outcome: AttemptOutcome): string {
  switch (outcome.state) {
    case 'delivered':
      return `Delivered with ${outcome.statusCode} at attempt ${outcome.attempt}.`;
    case 'failed':
      return `Failed for good after attempt ${outcome.attempt}: ${outcome.reason}.`;
    case 'retrying': {
      const why = outcome.isProbe ? '' : ': enough workflows are open';
      const carrier = outcome.byWorkflow ? '' : `, by the delivery loop${why}`;
      return `Attempt ${outcome.attempt}: ${outcome.reason}. Next at ${timeAfter(outcome.delayMs)}${carrier}.`;
    }
    case 'deferred':
      return `Attempt ${outcome.attempt}: ${outcome.reason}. It waits in the queue until the endpoint takes deliveries again.`;
    case 'waiting':
      return `Waiting until ${timeAfter(outcome.delayMs)}: ${outcome.reason}.`;
    case 'off':
      return `Back in the queue: ${outcome.reason}.`;
    case 'finished':
      return 'Settled before.';
  }
}

function timeAfter(delayMs: number): string {
  return new Date(Date.now() + delayMs).toISOString();
}

function nothingAfter(ms: number): Promise<null> {
  return new Promise((resolve) => setTimeout(resolve, ms, null).unref());
}
