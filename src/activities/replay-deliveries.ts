import { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { openQueueLimit, queuePages } from '../features/replays/queue-pages.ts';
import { changeReplay, settleReplay } from '../features/replays/replay-steps.ts';
import type { Replay } from '../features/replays/replay-store.ts';
import type { Database } from '../platform/postgres/database.ts';
import { awaitingDatabase, notYet, withHeartbeat } from '../platform/temporal/activity-kit.ts';

/** How far a replay is. `queued` and `skipped` make up `total` in the end. */
export type ReplayProgress = {
  state: 'running' | 'paused' | 'done' | 'cancelled';
  total: number;
  queued: number;
  skipped: number;
};

export type ReplayDeliveriesInput = { wabaId: string; replayId: string };

export type ReplayActivities = ReturnType<typeof makeReplayActivities>;

export type ReplayActivityTools = {
  database: Database;
  maxOpenPerEndpoint?: number;
};

const MAX_OPEN_PER_ENDPOINT = 5_000;
const TYPE = 'NotYetReplayed';
const LOOK_AGAIN_MS = 15_000;
const BUSY_LOOK_AGAIN_MS = 2_000;

export function makeReplayActivities({
  database,
  maxOpenPerEndpoint = MAX_OPEN_PER_ENDPOINT,
}: ReplayActivityTools) {
  return {
    /**
     * Queues pages until the replay is through, paused or cancelled, or has come much further than `reported`.
     * While endpoints have enough to do it fails, benignly, with the wait until it looks again.
     */
    queueReplay: (input: ReplayDeliveriesInput & { reported: number }): Promise<ReplayProgress> =>
      withProgress(async (beat) => {
        const { replay } = await settled(database, input);
        beat(replay);
        if (replay.state !== 'running') return progressOf(replay);
        const limit = await openQueueLimit(database, replay, maxOpenPerEndpoint);
        const end = await queuePages({ database, limit, onPage: beat, throwIfEnded }, replay, input.reported);
        if (end.waitMs !== null) throw notYet(TYPE, `${summaryOf(end.replay)} ${end.reason}`, end.waitMs);
        const last = (await settled(database, input)).replay;
        const isOver = last.state !== 'running' || last.cursor.endpoints.length > 0;
        if (!isOver) throw notYet(TYPE, 'Rows of a pause are still to be released.', BUSY_LOOK_AGAIN_MS);
        return progressOf(last);
      }),

    /** Returns when a paused replay goes on or is cancelled; until then it fails, benignly, and looks again. */
    awaitReplayResume: (input: ReplayDeliveriesInput): Promise<ReplayProgress> =>
      withProgress(async () => {
        const { replay } = await settled(database, input);
        if (replay.state !== 'paused') return progressOf(replay);
        throw notYet(TYPE, `Paused: ${summaryOf(replay)}`, LOOK_AGAIN_MS);
      }),

    /** Pauses or resumes a replay; one that has ended stays as it is. */
    switchReplayState: (input: ReplayDeliveriesInput & { state: 'paused' | 'running' }): Promise<void> =>
      withProgress(async () => {
        await changeReplay(database, input, input.state);
      }),

    /** Cancels a replay and takes out of its queue what is not being attempted, until nothing of it is open. */
    endCancelledReplay: (input: ReplayDeliveriesInput): Promise<ReplayProgress> =>
      withProgress(async () => {
        await changeReplay(database, input, 'cancelled');
        const { replay, ended } = await settled(database, input);
        if (!ended)
          throw notYet(TYPE, 'Attempts are under way; what remains is taken out then.', BUSY_LOOK_AGAIN_MS);
        return progressOf(replay);
      }),
  };
}

/** Throws a failure that ends the workflow when the replay is gone: its row can only be deleted by hand. */
async function settled(
  database: Database,
  input: ReplayDeliveriesInput,
): Promise<{ replay: Replay; ended: boolean }> {
  const answer = await settleReplay(database, input);
  if (answer !== null) return answer;
  const message = `There is no replay ${input.replayId} of WABA ${input.wabaId}.`;
  throw ApplicationFailure.create({ message, type: 'UnknownReplay', nonRetryable: true });
}

async function withProgress<Result>(
  run: (beat: (replay: Replay) => void) => Promise<Result>,
): Promise<Result> {
  const context = Context.current();
  let progress: ReplayProgress | null = context.info.heartbeatDetails ?? null;
  const beat = (replay: Replay) => {
    progress = progressOf(replay);
    context.heartbeat(progress);
  };
  return await withHeartbeat(
    () => awaitingDatabase(TYPE, () => run(beat)),
    () => progress,
  );
}

/** The workflow wants no more of it, or this worker stops and another one goes on. */
function throwIfEnded(): void {
  const { cancellationSignal, cancellationDetails } = Context.current();
  if (!cancellationSignal.aborted) return;
  if (cancellationDetails?.cancelRequested) throw new CancelledFailure('cancelled');
  throw notYet(TYPE, 'The worker is shutting down; another one goes on.', 1_000);
}

function progressOf({ state, total, queued, cursor }: Replay): ReplayProgress {
  return { state, total, queued, skipped: cursor.skipped };
}

function summaryOf({ total, queued }: Replay): string {
  return `${queued} of ${total} queued.`;
}
