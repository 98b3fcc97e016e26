import type { Client } from '@temporalio/client';
import type { EventIdHash } from '../../platform/crypto/installation-secret.ts';
import type { Logger } from '../../platform/logger.ts';
import { type Loop, makeFullLooks, startLoop } from '../../platform/loop.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { publicDeliveryId } from '../../platform/public-ids.ts';
import { type StartAnswer, startOrReplace } from '../../platform/temporal/workflow-tasks.ts';
import { recordWorkflow } from '../delivery-log.ts';
import {
  type DeliveryLabel,
  type DeliveryPlace,
  deliveryWorkflowId,
  labelDeliveries,
  releaseExpired,
} from '../queue/claim.ts';
import { dropUnsendable } from '../queue/remove.ts';
import { type Overdue, releaseDueRetries, retryInLoop, stepAside, takeOverdue } from '../queue/sweep.ts';
import { deliveryStart } from './start-workflows.ts';

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

type StartTools = {
  client: Client;
  database: Database;
  logger: Logger;
  taskQueue: string;
  leaseMs: number;
  eventIdHash: EventIdHash;
};

type Restarts = {
  /** Their workflows could not be started. */
  failed: readonly DeliveryLabel[];
  /** How many were taken out of the queue: their event or endpoint is gone. */
  dropped: number;
  /** Why starts failed; null when none did. */
  failure: Error | null;
};

/**
 * Starts the workflows of overdue deliveries again. One that runs is trusted, unless it cannot go on: then it is
 * replaced. A failure is left to the caller to throw, so that it waits before it tries again: Temporal is away or refuses.
 */
async function restartDeliveries(tools: StartTools, overdue: readonly Overdue[]): Promise<Restarts> {
  if (overdue.length === 0) return { failed: [], dropped: 0, failure: null };
  const labels = await labelDeliveries(tools.database, overdue);
  const overdueMs = new Map(overdue.map((delivery) => [delivery.deliveryId, delivery.overdueMs]));
  const results = await Promise.all(
    labels.map((label) => tryStart(tools, label, overdueMs.get(label.deliveryId) ?? 0)),
  );
  const failed = labels.filter((_, index) => results[index] instanceof Error);
  const carried = labels
    .filter((label) => !failed.includes(label))
    .map((label) => ({ ...label, workflowId: deliveryWorkflowId(label) }));
  await recordWorkflow(tools.database, carried);
  const dropped = await dropUnlabelled(tools, overdue, labels);
  return { failed, dropped, failure: results.find((result) => result instanceof Error) ?? null };
}

async function tryStart(
  { client, logger, ...tools }: StartTools,
  label: DeliveryLabel,
  overdueMs: number,
): Promise<StartAnswer | Error> {
  try {
    const hash = await tools.eventIdHash(label.eventId);
    const options = deliveryStart({ ...tools, eager: true }, label, hash);
    return await startOrReplace({ client, logger, workflowType: 'deliverEvent', options, overdueMs });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** What has no label has no event or no endpoint: left alone, it would use up its endpoint's share for ever. */
async function dropUnlabelled(
  { database, logger }: StartTools,
  deliveries: readonly DeliveryPlace[],
  labels: readonly DeliveryLabel[],
): Promise<number> {
  if (labels.length === deliveries.length) return 0;
  const labelled = new Set(labels.map(({ deliveryId }) => deliveryId));
  const others = deliveries.map(({ deliveryId }) => deliveryId).filter((id) => !labelled.has(id));
  const dropped = await dropUnsendable(database, others);
  const ids = dropped.map(publicDeliveryId);
  if (ids.length > 0)
    logger.info({ deliveries: ids }, 'taken out of the queue: their event or endpoint no longer exists');
  return ids.length;
}
