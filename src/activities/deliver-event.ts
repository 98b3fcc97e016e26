import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import type { DeliverEventInput } from '../engine/deliveries/dispatch/start-workflows.ts';
import type { DeliveryLoop } from '../engine/deliveries/loop/delivery-loop.ts';
import type { DeliveryRuns } from '../engine/deliveries/loop/delivery-runs.ts';
import { type DeliveryNews, newsOf } from '../engine/deliveries/run-news.ts';
import { removeDelivery } from '../engine/queue/remove.ts';
import type { Database } from '../platform/postgres/database.ts';
import { notYet, withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type DeliverEventActivities = ReturnType<typeof makeDeliverEventActivities>;

type DeliverEventTools = {
  database: Database;
  loop: Pick<DeliveryLoop, 'attemptOne' | 'wake'>;
  runs: Pick<DeliveryRuns, 'join' | 'cancel'>;
};

/** What takes longer is to be seen as a pending activity. */
const QUICK_MS = 1_000;

export function makeDeliverEventActivities({ database, loop, runs }: DeliverEventTools) {
  return {
    /**
     * What came of the attempt that this process holds for the run; null when it has none, or when that takes longer than
     * a workflow task should. A local activity.
     */
    async joinAttempt(deliveryId: string): Promise<DeliveryNews | null> {
      const outcome = await Promise.race([runs.join(deliveryId), sleep(QUICK_MS, null, { ref: false })]);
      return outcome === null ? null : newsOf(outcome);
    },

    /** Attempts until the delivery has ended; each failure carries the wait until the next attempt, or the next look. */
    async attemptDelivery({ deliveryId, deliveryDay }: DeliverEventInput): Promise<DeliveryNews> {
      const outcome = await withHeartbeat(() => loop.attemptOne({ deliveryId, deliveryDay }, database));
      const news = newsOf(outcome);
      if (news.end === 'dropped') {
        await runs.cancel(Context.current().info.workflowExecution?.workflowId ?? '');
        throw notYet('NotYetDelivered', news.summary, DROPPED_LOOK_MS);
      }
      if (news.end !== null) return news;
      const delayMs = 'delayMs' in outcome ? outcome.delayMs : DEFERRED_LOOK_MS;
      throw notYet('NotYetDelivered', news.summary, delayMs);
    },

    /** Drops a delivery because its run was cancelled; waits for an attempt that is under way. */
    async dropDelivery(deliveryId: string): Promise<void> {
      const outcome = await database.transaction((trx) =>
        removeDelivery(trx, deliveryId, 'dropped: its workflow was cancelled'),
      );
      if (outcome === 'claimed') throw notYet('NotYetDelivered', 'an attempt is under way', 2_000);
      loop.wake();
    },
  };
}

/** The cancellation comes at once, unless Temporal goes away in between. */
const DROPPED_LOOK_MS = 30_000;

/** Its endpoint takes no deliveries; the next look says until when. */
const DEFERRED_LOOK_MS = 10_000;
