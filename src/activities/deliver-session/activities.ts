import { Context } from '@temporalio/activity';
import type { DeliverySession, SessionCounts } from '../../deliveries/loop/delivery-loop.ts';

export type DeliverSessionActivities = ReturnType<typeof makeDeliverSessionActivities>;

const HEARTBEAT_MS = 3_000;

/** After this time the workflow gives the seat anew, so that its history and time-outs stay short. */
const SEAT_MS = 3_600_000;

/** The activity of `deliverSession`; one at a time per process. */
export function makeDeliverSessionActivities(tools: {
  session: DeliverySession;
  /** Whether the process is about to end: then nothing more is claimed. */
  isStopping: () => boolean;
}) {
  const { session } = tools;
  return {
    /** Claims and attempts until there is nothing to do (`ended`), the process stops (`ended`), or an hour is over. */
    async claimWhileBusy(): Promise<{ ended: boolean; summary: string }> {
      const context = Context.current();
      const { workflowId = '', runId = '' } = context.info.workflowExecution ?? {};
      const before = session.counts();
      const untilMs = performance.now() + SEAT_MS;
      const heartbeat = setInterval(
        () => context.heartbeat(difference(session.counts(), before)),
        HEARTBEAT_MS,
      );
      const onCancelled = () => session.wake();
      context.cancellationSignal.addEventListener('abort', onCancelled);
      try {
        const how = await session.run({
          // The number is used again and again: only with the run is it known who carried a delivery.
          workflowId: `${workflowId}/${runId}`,
          ended: () =>
            tools.isStopping() || context.cancellationSignal.aborted || performance.now() > untilMs,
        });
        const counts = difference(session.counts(), before);
        const ended = how === 'idle' || tools.isStopping() || context.cancellationSignal.aborted;
        return { ended, summary: summaryOf(counts) };
      } finally {
        clearInterval(heartbeat);
        context.cancellationSignal.removeEventListener('abort', onCancelled);
      }
    },
  };
}

function difference(now: SessionCounts, before: SessionCounts): SessionCounts {
  return {
    claimed: now.claimed - before.claimed,
    delivered: now.delivered - before.delivered,
    failing: now.failing - before.failing,
    lost: now.lost - before.lost,
  };
}

function summaryOf({ claimed, delivered, failing, lost }: SessionCounts): string {
  const given = lost > 0 ? ` ${lost} claims were given back or lost.` : '';
  return `Claimed ${claimed}, delivered ${delivered}, ${failing} to be attempted again by workflows of their own.${given}`;
}
