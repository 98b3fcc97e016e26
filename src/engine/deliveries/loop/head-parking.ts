import { type Loop, startLoop } from '../../../platform/loop.ts';
import { HAS_REOPENED } from '../../endpoint/parking-marks.ts';
import { findDueEndpoints, HAS_DUE } from '../../queue/claim.ts';
import { parkHeads, unparkHeads } from '../../queue/park.ts';
import type { UpkeepTools } from '../dispatch/queue-upkeep.ts';
import type { DeliveryLoop } from './delivery-loop.ts';

/** Between two looks for what is to be parked. */
const LOOK_REST_MS = 10_000;

/** An endpoint that takes nothing for a moment keeps its heads where they are. */
const CLOSED_SECONDS = 60;

/** Endpoints per statement. */
const PAGE = 100;
const PARKED_AT_ONCE = 1_000;
const UNPARKED_AT_ONCE = 1_000;

type ParkingTools = Pick<UpkeepTools, 'database' | 'logger' | 'isLeader' | 'workWatch'> & {
  loop: Pick<DeliveryLoop, 'wake'>;
  troubleWatch: { closed(endpointIds: readonly string[]): void };
};

/**
 * Keeps the deliveries of endpoints that take nothing out of the way of those that do: one process of all parks the heads
 * of endpoints that stay paused, disabled or probed; each lets those return whose endpoint takes deliveries again.
 */
export function startHeadParking(tools: ParkingTools): Loop {
  const { database, logger, isLeader, loop } = tools;
  const parkNext = makeParkingLook(tools);
  return startLoop({
    name: 'head-parking',
    logger,
    work: { watch: tools.workWatch, hasWork: `${HAS_REOPENED} or ${HAS_DUE}` },
    turn: async () => {
      const returned = await unparkHeads(database, UNPARKED_AT_ONCE);
      if (returned > 0) loop.wake();
      const hasMore = isLeader() && (await parkNext());
      // A provider with thousands of endpoints may have come back.
      return hasMore || returned > 0;
    },
  });
}

/** Parks the next batch, page by page over all endpoints with something due; true: there is more to look at. */
function makeParkingLook({ database, troubleWatch }: ParkingTools): () => Promise<boolean> {
  let afterEndpointId: string | null = null;
  let nextMs = Number.NEGATIVE_INFINITY;
  return async () => {
    if (afterEndpointId === null && performance.now() < nextMs) return false;
    const page = await findDueEndpoints(database, { afterEndpointId: afterEndpointId ?? '0', limit: PAGE });
    const endpointIds = page.filter(({ isOpen }) => !isOpen).map(({ endpointId }) => endpointId);
    const batch = { endpointIds, closedSeconds: CLOSED_SECONDS, limit: PARKED_AT_ONCE };
    const { parked, closed } = await parkHeads(database, batch);
    if (parked > 0) troubleWatch.closed(closed);
    if (parked === PARKED_AT_ONCE) return true;
    afterEndpointId = page.length < PAGE ? null : (page.at(-1)?.endpointId ?? null);
    if (afterEndpointId === null) nextMs = performance.now() + LOOK_REST_MS;
    return afterEndpointId !== null;
  };
}
