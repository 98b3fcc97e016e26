import { ApplicationFailure } from '@temporalio/common';
import { LAST_RECIPIENT } from '../features/messages/broadcasts/broadcast-recipients.ts';
import {
  type BroadcastStep,
  endCancelled,
  stepBroadcast,
  switchIfItMay,
} from '../features/messages/broadcasts/broadcast-steps.ts';
import {
  type Broadcast,
  type BroadcastIds,
  type BroadcastState,
  findBroadcast,
} from '../features/messages/broadcasts/broadcast-store.ts';
import type { PassTools } from '../features/messages/send/send-pass.ts';
import { awaitingDatabase, notYet, withHeartbeat } from '../platform/temporal/activity-kit.ts';
import { inPasses } from './in-passes.ts';

/** How far a broadcast is; `pausedBecause` where it paused itself. */
export type BroadcastProgress = {
  state: BroadcastState;
  recipients: number;
  pending: number;
  pausedBecause: string | null;
  /** The last recipient of the next part; null: there is none. Earlier versions had no parts. */
  nextUpTo?: string | null;
};

export type SendBroadcastInput = BroadcastIds;

export type BroadcastActivities = ReturnType<typeof makeBroadcastActivities>;

const TYPE = 'NotYetSent';
const LOOK_AGAIN_MS = 15_000;

export function makeBroadcastActivities(tools: PassTools) {
  const { database } = tools;
  return {
    /**
     * Sends the messages of the recipients up to `upTo`, until the broadcast is paused or cancelled, or all have theirs. While it has to wait it fails,
     * benignly, with the wait until it looks again.
     */
    queueBroadcast: async (
      input: SendBroadcastInput & { upTo?: string | null },
    ): Promise<BroadcastProgress> => {
      // Runs of earlier versions have no parts.
      const { upTo = LAST_RECIPIENT } = input;
      const { broadcast, nextUpTo } = await inPasses(
        async (pass) => known(input, await stepBroadcast(tools, input, { ...pass, upTo })),
        (step) => summaryOf(step.broadcast),
      );
      return { ...progressOf(broadcast), nextUpTo };
    },

    /** Returns when a paused broadcast goes on or is cancelled; until then it fails, benignly, and looks again. */
    awaitBroadcastResume: (input: SendBroadcastInput): Promise<BroadcastProgress> =>
      withHeartbeat(() =>
        awaitingDatabase(TYPE, async () => {
          const broadcast = known(input, await findBroadcast(database, input));
          if (broadcast.state !== 'paused') return progressOf(broadcast);
          throw notYet(TYPE, `Paused: ${summaryOf(broadcast)}`, LOOK_AGAIN_MS);
        }),
      ),

    /** Pauses or resumes a broadcast; one that has ended stays as it is. */
    switchBroadcastState: async (input: SendBroadcastInput & { verb: 'pause' | 'resume' }): Promise<void> =>
      await awaitingDatabase(TYPE, () => switchIfItMay(database, input, input.verb)),

    /** Cancels a broadcast, and its messages whose sending has not begun. */
    endCancelledBroadcast: async (input: SendBroadcastInput): Promise<BroadcastProgress> =>
      await awaitingDatabase(TYPE, async () => progressOf(known(input, await endCancelled(database, input)))),
  };
}

/** Throws a failure that ends the workflow when the broadcast is gone: its WABA was erased. */
function known<Found extends Broadcast | BroadcastStep>(
  input: SendBroadcastInput,
  found: Found | null,
): Found {
  if (found !== null) return found;
  const message = `There is no broadcast ${input.broadcastId} of WABA ${input.wabaId}.`;
  throw ApplicationFailure.create({ message, type: 'UnknownBroadcast', nonRetryable: true });
}

function progressOf({ state, recipients, pending, pausedBecause }: Broadcast): BroadcastProgress {
  return { state, recipients, pending, pausedBecause };
}

function summaryOf({ recipients, pending }: Broadcast): string {
  return `${recipients - pending} of ${recipients} queued.`;
}
