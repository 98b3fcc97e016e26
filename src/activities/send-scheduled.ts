import { Context } from '@temporalio/activity';
import type { PassTools } from '../features/messages/send/send-pass.ts';
import { type SharedMoment, stepSharedMoment } from '../features/messages/send/shared-moment.ts';
import { awaitingDatabase, notYet, withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type SendScheduledActivities = ReturnType<typeof makeSendScheduledActivities>;

const TYPE = 'NotYetSent';
/** An attempt ends by then, and the next goes on. */
const ATTEMPT_MS = 60_000;

export function makeSendScheduledActivities(tools: PassTools) {
  return {
    /** Sends the messages of a moment until none is left. While it has to wait it fails, benignly, with the wait until it looks again. */
    sendMoment: (moment: SharedMoment): Promise<string> =>
      withHeartbeat(() =>
        awaitingDatabase(TYPE, async () => {
          const context = Context.current();
          const signal = context.cancellationSignal;
          const endsAtMs = performance.now() + ATTEMPT_MS;
          let sent = 0;
          for (;;) {
            const pass = { endsAtMs, signal, onMessage: () => context.heartbeat() };
            const step = await stepSharedMoment(tools, moment, pass);
            sent += step.sent;
            if (step.waitMs === null) return `None is left that has no workflow of its own.`;
            if (step.waitMs > 0 || signal.aborted || performance.now() > endsAtMs)
              throw notYet(TYPE, `${sent} were begun in this attempt.`, Math.max(step.waitMs, 1));
          }
        }),
      ),
  };
}
