import type { Logger } from '../../platform/logger.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { MOST_CLOCK_SKEW_MS, readClockSkewMs } from '../../platform/postgres/clock.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { finishHousekeepingStep, takeHousekeepingStep } from '../../platform/postgres/housekeeping-steps.ts';
import { type HousekeepingStep, type HousekeepingTools, housekeepingSteps } from './housekeeping-steps.ts';

const POLL_MS = 60_000;
const EVERY_MS = 3_600_000;

/** A step that fails, or whose process died in it, has its next turn then. */
const AGAIN_MS = 10 * 60_000;

/**
 * Hourly, in one of all workers: partitions for the coming days, and an end to what nothing can ask for any more. Each
 * step goes on its own, so that one that fails stops no other; how it fails is kept for the portal and for metrics.
 */
export function startHousekeeping(tools: HousekeepingTools): Loop {
  const { database, logger } = tools;
  const steps = housekeepingSteps(tools);
  let clockCheckedMs = Number.NEGATIVE_INFINITY;
  return startLoop({
    name: 'housekeeping',
    pollMs: POLL_MS,
    logger,
    turn: async () => {
      if (performance.now() - clockCheckedMs >= EVERY_MS) {
        await warnOfClock(database, logger);
        clockCheckedMs = performance.now();
      }
      for (const step of steps) await runStep(tools, step);
      return false;
    },
  });
}

/** Does a step that is due and that nobody else does; true when it was done, well or not. */
export async function runStep(
  { database, logger }: Pick<HousekeepingTools, 'database' | 'logger'>,
  { name, run }: HousekeepingStep,
): Promise<boolean> {
  if (!(await takeHousekeepingStep(database, name, AGAIN_MS))) return false;
  const failure = await run().then(
    () => null,
    (error: unknown) => error ?? new Error('no reason given'),
  );
  if (failure !== null) logger.warn({ step: name, err: failure }, 'a step of housekeeping failed');
  const error = failure === null ? null : failure instanceof Error ? failure.message : String(failure);
  await finishHousekeepingStep(database, name, { error, nextMs: failure === null ? EVERY_MS : AGAIN_MS });
  return true;
}

/** Says so when this process and the database do not agree on the time: days of events come from one, leases from the other. */
async function warnOfClock(database: Database, logger: Logger): Promise<void> {
  const skewMs = await readClockSkewMs(database);
  if (Math.abs(skewMs) <= MOST_CLOCK_SKEW_MS) return;
  logger.warn({ databaseAheadMs: skewMs }, 'the clocks of this process and of the database differ: set them');
}
