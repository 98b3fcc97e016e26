import { dropWaiting, listGoneEndpoints } from '../engine/queue/remove.ts';
import { makeUsageFolding, USAGE_STEP } from '../features/messages/usage-days.ts';
import { ingestHistory } from '../ingest/fields/history.ts';
import { type HousekeepingStep, retentionSteps } from '../ops/erasures/retention/retention.ts';
import { warnOfClock } from '../ops/health/clock-warning.ts';
import { redactAuditOfAll } from '../platform/audit/audit.ts';
import { auditAnchor } from '../platform/audit/audit-chain.ts';
import { type Loop, startLoop } from '../platform/loop.ts';
import { LOOPS } from '../platform/loops.ts';
import type { Database } from '../platform/postgres/database.ts';
import { ensurePartitions } from '../platform/postgres/partitions.ts';
import {
  failureOf,
  finishHousekeepingStep,
  listDueSteps,
  releaseHousekeepingStep,
  takeHousekeepingStep,
} from '../platform/postgres/worker-processes.ts';

const EVERY_MS = 3_600_000;

/** A step that fails, or was cut off, or whose process died in it, has its next turn then. */
const AGAIN_MS = 10 * 60_000;

/** A step begins nothing more after it, so that no other process begins it as well. */
const LONGEST_STEP_MS = 5 * 60_000;

const DAY_MS = 24 * EVERY_MS;

/**
 * Hourly, in one of all workers: partitions for the coming days, and the retention of everything else. Each
 * step goes on its own, so that one that fails stops no other; how it fails is kept for the portal and for metrics.
 */
export function startHousekeeping(tools: HousekeepingTools): Loop {
  const { database, logger } = tools;
  const steps = housekeepingSteps(tools);
  const stopping = new AbortController();
  let clockCheckedMs = Number.NEGATIVE_INFINITY;
  const loop = startLoop({
    name: 'housekeeping',
    logger,
    turn: async () => {
      if (performance.now() - clockCheckedMs >= EVERY_MS) {
        await warnOfClock(database, logger);
        clockCheckedMs = performance.now();
      }
      const due = await listDueSteps(
        database,
        steps.map(({ name }) => name),
      );
      for (const step of steps.filter(({ name }) => due.has(name)))
        if (!stopping.signal.aborted) await runStep(tools, step, stopping.signal);
      return false;
    },
  });
  return {
    ...loop,
    stop: async () => {
      stopping.abort();
      await loop.stop();
    },
  };
}

/**
 * Does a step that is due and that no other process does; true when it was done, well or not. Once `stopping` is aborted
 * it is cut off, and free for other processes.
 */
export async function runStep(
  { database, logger }: Pick<HousekeepingTools, 'database' | 'logger'>,
  { name, run, everyMs = EVERY_MS }: HousekeepingStep,
  stopping: AbortSignal = new AbortController().signal,
): Promise<boolean> {
  if (!(await takeHousekeepingStep(database, name, AGAIN_MS))) return false;
  const timeOut = AbortSignal.timeout(LONGEST_STEP_MS);
  const failure = await failureOf(run(AbortSignal.any([stopping, timeOut])));
  if (stopping.aborted) {
    await releaseHousekeepingStep(database, name).catch(() => undefined);
    return true;
  }
  if (failure !== null) logger.warn({ step: name, err: failure.error }, 'a step of housekeeping failed');
  const isDone = failure === null && !timeOut.aborted;
  const nextMs = isDone ? everyMs : AGAIN_MS;
  await finishHousekeepingStep(database, name, { error: failure?.text ?? null, nextMs });
  return true;
}

type HousekeepingTools = Parameters<typeof retentionSteps>[0];

/** A partition that cannot be made yet is no fault before so many days are left. */
const DAYS_LEFT = 3;

const GONE_ENDPOINTS_AT_ONCE = 100;

class HousekeepingError extends Error {}

export function housekeepingSteps(tools: HousekeepingTools): HousekeepingStep[] {
  const { database } = tools;
  return [
    { name: 'partitions', run: () => makePartitions(database) },
    { name: 'deleted endpoints', run: (ending) => dropForGoneEndpoints(database, ending) },
    { name: 'history', run: (ending) => ingestHistory(database, ending), everyMs: LOOPS.housekeeping.pollMs },
    { name: USAGE_STEP, run: makeUsageFolding(database), everyMs: LOOPS.housekeeping.pollMs },
    ...retentionSteps(tools),
    { name: 'audit ids', run: (ending) => redactAuditOfAll(database, ending) },
    { name: 'audit anchor', run: () => sayAnchor(tools), everyMs: DAY_MS },
  ];
}

/** What the log stream keeps, no change of the database can take back: `admin audit verify --anchor`. */
async function sayAnchor({ database, logger }: HousekeepingTools): Promise<void> {
  const { position, hash } = await auditAnchor(database);
  logger.info({ security: true, anchor: `${position}:${hash}` }, 'the audit log ends here');
}

async function makePartitions(database: Database): Promise<void> {
  const missing = (await ensurePartitions(database)).filter(({ daysAhead }) => daysAhead < DAYS_LEFT);
  const [first] = missing;
  if (first === undefined) return;
  throw new HousekeepingError(
    `${missing.length} partitions of the next ${DAYS_LEFT} days are missing, first ${first.table} ${first.day}: ${first.reason}`,
  );
}

/** An endpoint's removal goes over the queue once more after the endpoint is gone; a process may die before that. */
async function dropForGoneEndpoints(database: Database, ending: AbortSignal): Promise<void> {
  for (const endpointId of await listGoneEndpoints(database, GONE_ENDPOINTS_AT_ONCE)) {
    if (ending.aborted) return;
    await dropWaiting(database, endpointId, {
      reason: 'dropped: the endpoint was deleted',
      underWayToo: true,
      ending,
    });
  }
}
