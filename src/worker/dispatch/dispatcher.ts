import type { Database } from '../../database/database.ts';
import { recordWorkflow } from '../../database/deliveries.ts';
import {
  findOverdue,
  type HandedOver,
  type HandOverLimits,
  handOverDue,
  labelDeliveries,
  returnToDue,
} from '../../database/delivery-claims.ts';
import type { Logger } from '../logger.ts';
import { type Loop, startLoop } from '../loop.ts';
import { type DeliveryStarter, deliveryWorkflowId, startDelivery } from './start-delivery.ts';

export type DispatcherTools = Omit<DeliveryStarter, 'eager'> & { database: Database; logger: Logger };

/**
 * What waits for a retry counts as in flight: with this many, an endpoint gets no first attempts until one of them is
 * settled. It bounds what a dead endpoint leaves in Temporal.
 */
const IN_FLIGHT_PER_ENDPOINT = 400;

const LIMITS: HandOverLimits = {
  firstAttempts: 100,
  firstAttemptsPerEndpoint: 10,
  inFlightPerEndpoint: IN_FLIGHT_PER_ENDPOINT,
};

/** Beside the wake-ups: finds what another process queued or settled. */
const POLL_MS = 250;

/** Hands due deliveries over to workflows, as many as the limits allow. */
export function startDispatcher(tools: DispatcherTools): Loop {
  let lastEndpointId = '0';
  return startLoop({
    name: 'dispatcher',
    pollMs: POLL_MS,
    logger: tools.logger,
    turn: async () => {
      const deliveries = await handOverDue(tools.database, LIMITS, lastEndpointId);
      lastEndpointId = lastInTurn(deliveries, lastEndpointId);
      if (deliveries.length > 0) await startAll(tools, deliveries);
      return deliveries.length > 0;
    },
  });
}

/** The endpoint that the turn ended with: those above where it began come first, then it starts from below. */
function lastInTurn(deliveries: readonly HandedOver[], after: string): string {
  const turn = (id: bigint) => (id <= BigInt(after) ? 1 : 0);
  let last: bigint | null = null;
  for (const { endpointId } of deliveries) {
    const id = BigInt(endpointId);
    if (last === null || turn(id) > turn(last) || (turn(id) === turn(last) && id > last)) last = id;
  }
  return last?.toString() ?? '0';
}

/** A first attempt follows its hand-over at once, unless the process ended in between. */
const FIRST_OVERDUE_MS = 10_000;
const OVERDUE_MS = 60_000;
const SWEEP_POLL_MS = 5_000;

/** At most this many restarts per sweep, so that a restored database does not flood Temporal. */
const SWEEP_LIMIT = 100;

/** Restarts the workflows of deliveries that are overdue: terminated, lost with Temporal's data, or never started. */
export function startSweeper(tools: DispatcherTools): Loop {
  return startLoop({
    name: 'delivery-sweeper',
    pollMs: SWEEP_POLL_MS,
    logger: tools.logger,
    turn: async () => {
      const limits = { overdueMs: OVERDUE_MS, firstOverdueMs: FIRST_OVERDUE_MS, limit: SWEEP_LIMIT };
      const overdue = await findOverdue(tools.database, limits);
      if (overdue.length > 0) await startAll(tools, overdue);
      return false;
    },
  });
}

/** Starts the workflows; deliveries whose start fails go back to the queue and the failure is reported. */
async function startAll(tools: DispatcherTools, deliveries: readonly HandedOver[]): Promise<void> {
  const labels = await labelDeliveries(tools.database, deliveries);
  const starts = await Promise.allSettled(
    labels.map((label) => startDelivery({ ...tools, eager: true }, label)),
  );
  const failed = labels.filter((_, index) => starts[index]?.status === 'rejected');
  if (failed.length > 0)
    await returnToDue(
      tools.database,
      failed.map((label) => label.deliveryId),
    );
  const started = labels.filter((_, index) => starts[index]?.status === 'fulfilled');
  await recordWorkflow(
    tools.database,
    started.map((label) => ({ ...label, workflowId: deliveryWorkflowId(label) })),
  );
  const failure = starts.find((start) => start.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}
