import { Context } from '@temporalio/activity';
import type { Pass } from '../features/messages/send/send-pass.ts';
import { awaitingDatabase, notYet, withHeartbeat } from '../platform/temporal/activity-kit.ts';

/** An attempt ends by then, and the next goes on. */
const ATTEMPT_MS = 60_000;

/**
 * Makes one step after the other, and returns the last: it has no `waitMs`. While one has to wait, and after a minute, it fails, benignly, with the
 * wait until Temporal calls again.
 */
export async function inPasses<Step extends { waitMs: number | null }>(
  step: (pass: Pass) => Promise<Step>,
  summaryOf: (step: Step) => string,
): Promise<Step> {
  return await withHeartbeat(() =>
    awaitingDatabase('NotYetSent', async () => {
      const context = Context.current();
      const signal = context.cancellationSignal;
      const endsAtMs = performance.now() + ATTEMPT_MS;
      for (;;) {
        const last = await step({ endsAtMs, signal, onMessage: () => context.heartbeat() });
        if (last.waitMs === null) return last;
        if (last.waitMs > 0 || signal.aborted || performance.now() > endsAtMs)
          throw notYet('NotYetSent', summaryOf(last), Math.max(last.waitMs, 1));
      }
    }),
  );
}
