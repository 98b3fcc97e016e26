import type { Logger } from '../../platform/logger.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { makeFullLooks } from '../../platform/postgres/full-looks.ts';
import { releaseExpired } from '../queue/claim.ts';
import { takeOverdue } from '../queue/overdue.ts';
import { releaseDueRetries, retryInLoop } from '../queue/retries.ts';
import { stepAside } from '../queue/step-aside.ts';
import { restartDeliveries, type StartTools } from './restart-deliveries.ts';

export type SweeperTools = StartTools & {
  /** For how long a failing delivery may block others; 0: by event type and order scope. Endpoints may say otherwise. */
  blockLimitHours: number;
  /** Deliveries became claimable. */
  onReleased: () => void;
};

/** A first attempt by a workflow follows at once, unless the process ended in between. */
const FIRST_OVERDUE_MS = 10_000;
const OVERDUE_MS = 60_000;
/** After which a delivery is looked after again whose workflow still does nothing. */
const AGAIN_MS = 60_000;
const POLL_MS = 5_000;

/** At most this many restarts per sweep, so that a restored database does not flood Temporal. */
const RESTARTS = 100;
const RELEASES = 5_000;
const STEPS_ASIDE = 50;

/** Brings back what got stuck: claims of dead loops, lost workflows, lanes behind a head that fails for too long. */
export function startSweeper(tools: SweeperTools): Loop {
  const { database } = tools;
  const reach = makeReach();
  return startLoop({
    name: 'delivery-sweeper',
    pollMs: POLL_MS,
    logger: tools.logger,
    turn: async () => {
      const look = reach.begin();
      const released = await releaseExpired(database, { withinSeconds: look.withinSeconds, limit: RELEASES });
      const defaultSeconds = tools.blockLimitHours * 3_600;
      const stepped = await stepAside(database, { defaultSeconds, limit: STEPS_ASIDE });
      if (released + stepped > 0) tools.onReleased();
      const limits = {
        overdueMs: OVERDUE_MS,
        firstOverdueMs: FIRST_OVERDUE_MS,
        againMs: AGAIN_MS,
        withinSeconds: look.withinSeconds,
        limit: RESTARTS,
      };
      const overdue = await takeOverdue(database, limits);
      if (released < RELEASES && overdue.length < RESTARTS) look.end();
      const { failed, dropped, failure } = await restartDeliveries(tools, overdue);
      await retryInLoop(
        database,
        failed.map(({ deliveryId }) => deliveryId),
      );
      if (failure !== null) throw failure;
      return released === RELEASES || stepped === STEPS_ASIDE || dropped >= RESTARTS;
    },
  });
}

const RETRY_POLL_MS = 250;
const RETRIES = 1_000;

/** Makes retries due whose time has come and that no workflow carries. */
export function startRetryRelease(tools: {
  database: Database;
  logger: Logger;
  onReleased: () => void;
}): Loop {
  const reach = makeReach();
  return startLoop({
    name: 'retry-release',
    pollMs: RETRY_POLL_MS,
    logger: tools.logger,
    turn: async () => {
      const { withinSeconds, end } = reach.begin();
      const released = await releaseDueRetries(tools.database, { withinSeconds, limit: RETRIES });
      if (released > 0) tools.onReleased();
      if (released < RETRIES) end();
      return released === RETRIES;
    },
  });
}

const PROBE_POLL_MS = 1_000;

/** Lets the probes of endpoints whose breaker is open go when they are due. */
export function startProber(tools: { logger: Logger; probe: () => Promise<void> }): Loop {
  return startLoop({
    name: 'prober',
    pollMs: PROBE_POLL_MS,
    logger: tools.logger,
    turn: async () => {
      await tools.probe();
      return false;
    },
  });
}

/** Ten years. */
const EVERYTHING_SECONDS = 315_360_000;

/** What the last complete look may not have seen yet. */
const SPARE_SECONDS = 120;
const FULL_LOOK_REST = { times: 100, longestMs: 60_000 };

/**
 * How far back a sweep looks: at everything, unless that takes long because what was claimed and settled still lies
 * there; then to where the last complete sweep has been, and at everything once a minute.
 */
function makeReach() {
  const looks = makeFullLooks(FULL_LOOK_REST);
  let completeMs: number | null = null;
  return {
    begin() {
      const startMs = performance.now();
      const isFull = completeMs === null || looks.isDue();
      const sinceSeconds = (startMs - (completeMs ?? startMs)) / 1_000;
      return {
        withinSeconds: isFull ? EVERYTHING_SECONDS : sinceSeconds + SPARE_SECONDS,
        end() {
          completeMs = startMs;
          if (isFull) looks.took(performance.now() - startMs);
        },
      };
    },
  };
}
