import type { Logger } from '../../../platform/logger.ts';
import { type Loop, startLoop, type WorkWatch } from '../../../platform/loop.ts';
import { makeLowWater } from '../../../platform/low-water.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import {
  findRecovered,
  HAS_RECOVERED,
  isRecovered,
  noteBroughtForward,
} from '../../endpoint/endpoint-backlog.ts';
import { HAS_PROBE } from '../../endpoint/probes.ts';
import { releaseExpired } from '../../queue/claim.ts';
import { wakeDispatcher } from '../../queue/enqueue.ts';
import { bringForward } from '../../queue/retry.ts';
import { findLate, HAS_RETRY, HAS_STUCK, releaseDueRetries, stepAside } from '../../queue/sweep.ts';
import type { DeliveryLoop } from '../loop/delivery-loop.ts';
import { releaseBuffers } from './release-buffers.ts';

export type UpkeepTools = {
  database: Database;
  logger: Logger;
  loop: DeliveryLoop;
  /** Whether Temporal is there, as far as this process knows. */
  isTemporalUp: () => boolean;
  /** For how long a failing delivery may block others; 0: by event type and order scope. Endpoints may say otherwise. */
  blockLimitHours: number;
  isLeader: () => boolean;
  /** Whether this is left to the leader while nothing wakes this process. */
  standsAside?: () => boolean;
  workWatch?: WorkWatch;
};

/** A run that shows a delivery gets so much time to make its attempt; then a loop makes it. */
const RUN_GRACE_MS = 3_000;

const RETRIES = 1_000;
const BUFFERS = 100;
const TESTS = 20;
const NO_BUFFERS = { looked: 0, released: 0 };

/** Makes retries and buffered messages due whose time has come, and attempts test events that no run has come for. */
export function startRetryRelease(tools: UpkeepTools): Loop {
  const { database, logger, loop } = tools;
  const sweep = makeSweep(RETRIES);
  return startLoop({
    name: 'retry-release',
    logger,
    standsAside: tools.standsAside,
    work: { watch: tools.workWatch, hasWork: HAS_RETRY },
    turn: async () => {
      const runGraceMs = tools.isTemporalUp() ? RUN_GRACE_MS : 0;
      const released = await sweep((range) => releaseDueRetries(database, { ...range, runGraceMs }));
      const late = await findLate(database, { runGraceMs, limit: TESTS });
      const buffers = late.hasBufferedHead ? await releaseBuffers(database, BUFFERS) : NO_BUFFERS;
      if (released + buffers.released > 0) {
        loop.wake();
        wakeDispatcher(database);
      }
      await Promise.all(late.tests.map((test) => loop.attemptLate(test)));
      return released === RETRIES || buffers.looked >= BUFFERS;
    },
  });
}

const RELEASES = 5_000;
const STEPS_ASIDE = 50;

/** In one process of all: brings back what got stuck: claims of processes that died, and lanes behind a head that fails for too long. */
export function startSweeper({
  database,
  logger,
  loop,
  blockLimitHours,
  isLeader,
  workWatch,
}: UpkeepTools): Loop {
  const sweep = makeSweep(RELEASES);
  return startLoop({
    name: 'delivery-sweeper',
    logger,
    isLeader,
    work: { watch: workWatch, hasWork: HAS_STUCK },
    turn: async () => {
      const released = await sweep((range) => releaseExpired(database, range));
      const defaultSeconds = blockLimitHours * 3_600;
      const stepped = await stepAside(database, { defaultSeconds, limit: STEPS_ASIDE });
      if (released + stepped > 0) loop.wake();
      return released === RELEASES || stepped === STEPS_ASIDE;
    },
  });
}

/** Starts the probes of endpoints whose breaker is open when they are due. */
export function startProber({
  logger,
  loop,
  standsAside,
  workWatch,
}: Pick<UpkeepTools, 'logger' | 'standsAside' | 'workWatch'> & { loop: Pick<DeliveryLoop, 'probe'> }): Loop {
  const work = { watch: workWatch, hasWork: HAS_PROBE };
  return startLoop({ name: 'prober', logger, standsAside, work, turn: () => loop.probe() });
}

const ENDPOINTS_AT_ONCE = 100;

/** A retry that comes so soon by itself is left to its schedule. */
const SOON_SECONDS = 30;

/** In one process of all: brings forward what waits because its endpoint was in trouble, until that fails again. */
export function startBacklogReturn({ database, logger, loop, isLeader, workWatch }: UpkeepTools): Loop {
  return startLoop({
    name: 'backlog-return',
    logger,
    isLeader,
    work: { watch: workWatch, hasWork: HAS_RECOVERED },
    turn: async () => {
      const recovered = await findRecovered(database, ENDPOINTS_AT_ONCE);
      for (const endpointId of recovered) {
        const mayGoOn = (trx: Transaction) => isRecovered(trx, endpointId);
        const returned = await bringForward(database, endpointId, { soonSeconds: SOON_SECONDS, mayGoOn });
        await noteBroughtForward(database, endpointId, returned);
        const { retried } = returned;
        if (retried === 0) continue;
        loop.wake();
        logger.info({ endpointId, retried }, 'an endpoint is back: its retries were brought forward');
      }
      return recovered.length === ENDPOINTS_AT_ONCE;
    },
  });
}

/** Ten years. */
const EVERYTHING_SECONDS = 315_360_000;

/** A row that was due before may become visible so much later. */
const SPARE_MS = 120_000;
const FULL_SWEEP_REST = { times: 100, longestMs: 60_000 };

/** How far back a sweep looks: to where the last complete one has been, and at everything when that is soon done or long ago. */
function makeSweep(limit: number) {
  const dueFrom = makeLowWater({ rest: FULL_SWEEP_REST });
  return async (sweep: (range: { withinSeconds: number; limit: number }) => Promise<number>) => {
    const startMs = performance.now();
    const fromMs = dueFrom.from();
    const withinSeconds = fromMs === null ? EVERYTHING_SECONDS : (startMs - fromMs) / 1_000;
    const swept = await sweep({ withinSeconds, limit });
    const seen = { end: startMs - SPARE_MS, oldest: null };
    if (swept < limit) dueFrom.looked({ tookMs: performance.now() - startMs, seen });
    return swept;
  };
}
