import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
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
import type { Database } from '../platform/postgres/database.ts';
import { awaitingDatabase, notYet, withHeartbeat } from '../platform/temporal/activity-kit.ts';

/** How far a broadcast is; `pausedBecause` where it paused itself. */
export type BroadcastProgress = {
  state: BroadcastState;
  recipients: number;
  pending: number;
  pausedBecause: string | null;
};

export type SendBroadcastInput = BroadcastIds;

export type BroadcastActivities = ReturnType<typeof makeBroadcastActivities>;

const TYPE = 'NotYetSent';
const LOOK_AGAIN_MS = 15_000;
/** How often a run tells how far it is: a fiftieth of its recipients, or so many. */
const REPORTS = 50;
const LEAST_REPORTED = 500;

export function makeBroadcastActivities({ database }: { database: Database }) {
  return {
    /**
     * Gives recipients their messages until the broadcast is through, paused or cancelled, or has come much further than `reported`. While enough of
     * them wait for their turn it fails, benignly, with the wait until it looks again.
     */
    queueBroadcast: (input: SendBroadcastInput & { reported: number }): Promise<BroadcastProgress> =>
      withHeartbeat(() =>
        awaitingDatabase(TYPE, async () => {
          const beat = () => Context.current().heartbeat();
          const { broadcast, waitMs } = known(
            input,
            await stepBroadcast(database, input, { onMessage: beat }),
          );
          const much = Math.max(LEAST_REPORTED, broadcast.recipients / REPORTS);
          if (waitMs === null || broadcast.recipients - broadcast.pending - input.reported >= much)
            return progressOf(broadcast);
          throw notYet(TYPE, summaryOf(broadcast), waitMs);
        }),
      ),

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
