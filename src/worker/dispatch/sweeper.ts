import { giveUpBlocking } from '../../database/blocked-lanes.ts';
import { findOverdue, returnToDue } from '../../database/delivery-claims.ts';
import { releaseExpired } from '../../database/session-claims.ts';
import { type Loop, startLoop } from '../loop.ts';
import { type StartTools, startDeliveries } from './start-deliveries.ts';

export type SweeperTools = StartTools & {
  /** After how long a failing delivery may no longer hold up others; 0: never, unless its endpoint says so. */
  blockLimitHours: number;
  /** Deliveries became claimable. */
  onReleased: () => void;
};

/** A first attempt follows its hand-over at once, unless the process ended in between. */
const FIRST_OVERDUE_MS = 10_000;
const OVERDUE_MS = 60_000;
const POLL_MS = 5_000;

/** At most this many restarts per sweep, so that a restored database does not flood Temporal. */
const RESTARTS = 100;
const RELEASES = 5_000;
const GIVE_UPS = 50;

/** Brings back what got stuck: claims of dead sessions, lost workflows, heads that blocked their key for too long. */
export function startSweeper(tools: SweeperTools): Loop {
  const { database } = tools;
  return startLoop({
    name: 'delivery-sweeper',
    pollMs: POLL_MS,
    logger: tools.logger,
    turn: async () => {
      const released = await releaseExpired(database, RELEASES);
      const given = await giveUpBlocking(database, {
        defaultSeconds: tools.blockLimitHours * 3_600,
        limit: GIVE_UPS,
      });
      if (released + given.length > 0) tools.onReleased();
      for (const { workflowId } of given) if (workflowId !== null) await cancel(tools, workflowId);
      const limits = { overdueMs: OVERDUE_MS, firstOverdueMs: FIRST_OVERDUE_MS, limit: RESTARTS };
      const { dropped, failure } = await startDeliveries(tools, await findOverdue(database, limits), {
        giveBack: (ids) => returnToDue(database, ids),
        runsAlready: 'trust',
      });
      if (failure !== null) throw failure;
      return released === RELEASES || dropped === RESTARTS;
    },
  });
}

/** Its delivery is settled, so it has nothing left to do; one that is gone or never was is as good. */
async function cancel({ client, logger }: SweeperTools, workflowId: string): Promise<void> {
  if (!workflowId.startsWith('delivery/')) return;
  await client.workflow
    .getHandle(workflowId)
    .cancel()
    .catch((error: unknown) => logger.debug({ err: error, workflowId }, 'a workflow could not be cancelled'));
}
