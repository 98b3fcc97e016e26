import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import type { BusyEndpoint } from '../engine/deliveries/loop/attempt-tally.ts';
import type { DeliveryLoop, LoopCounts } from '../engine/deliveries/loop/delivery-loop.ts';
import { withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type DeliverSessionActivities = ReturnType<typeof makeDeliverSessionActivities>;

/** After this time the activity begins again, so that histories and time-outs stay short. */
const SHOWN_MS = 3_600_000;

/** The activity of `deliverSession`; one at a time per process. */
export function makeDeliverSessionActivities(tools: {
  loop: DeliveryLoop;
  /** Aborted when the process begins to end. */
  stopping: AbortSignal;
}) {
  const { loop, stopping } = tools;
  return {
    /** Shows what the loop does until an hour is over, or the process stops or the workflow is cancelled (`ended`). */
    async showLoop(): Promise<{ ended: boolean; summary: string }> {
      const context = Context.current();
      const { workflowId = '', runId = '' } = context.info.workflowExecution ?? {};
      const before = loop.counts();
      loop.tally.clear();
      const report = () => ({
        ...difference(loop.counts(), before),
        inFlight: loop.inFlight(),
        busiestEndpoints: loop.tally.busiest(),
      });
      const ending = AbortSignal.any([stopping, context.cancellationSignal]);
      // Only with the run is it known which hours a number of this workflow means.
      loop.showIn(`${workflowId}/${runId}`);
      try {
        const untilEnd = () => sleep(SHOWN_MS, undefined, { signal: ending }).catch(() => undefined);
        await withHeartbeat(untilEnd, report);
        return {
          ended: ending.aborted,
          summary: summaryOf(difference(loop.counts(), before), loop.tally.busiest()),
        };
      } finally {
        loop.showIn(null);
      }
    },
  };
}

function difference(now: LoopCounts, before: LoopCounts): LoopCounts {
  return {
    claimed: now.claimed - before.claimed,
    delivered: now.delivered - before.delivered,
    failing: now.failing - before.failing,
    lost: now.lost - before.lost,
  };
}

function summaryOf(
  { claimed, delivered, failing, lost }: LoopCounts,
  busiest: readonly BusyEndpoint[],
): string {
  const released = lost > 0 ? ` ${lost} claims were released or lost.` : '';
  const named = busiest.map(({ endpointId, attempts }) => `${endpointId} (${attempts})`).join(', ');
  const busy = named === '' ? '' : ` Busiest endpoints, with attempts: ${named}.`;
  return `Claimed ${claimed}, delivered ${delivered}, ${failing} to be retried.${released}${busy}`;
}
