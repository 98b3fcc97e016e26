import type { Logger } from '../../platform/logger.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { findDueEndpoints } from '../queue/claim.ts';
import { parkHeads, unparkHeads } from '../queue/park.ts';

const POLL_MS = 1_000;

/** Between two looks for what is to be parked. */
const LOOK_REST_MS = 10_000;

/** An endpoint that is paused for a moment keeps its heads where they are. */
const CLOSED_SECONDS = 60;

/** Endpoints per statement. */
const PAGE = 100;
const PARKED_AT_ONCE = 1_000;
const UNPARKED_AT_ONCE = 1_000;

type ParkingTools = {
  database: Database;
  logger: Logger;
  /** Whether this process does what only one process has to do. */
  isLeader: () => boolean;
  loop: { wake(): void };
  /** Is told which endpoints take nothing while deliveries wait for them. */
  troubleWatch: { closed(endpointIds: readonly string[]): void };
};

/**
 * Keeps the deliveries of endpoints that take nothing out of the way of those that do: one process of all parks the heads
 * of endpoints that stay paused or disabled; each lets those return whose endpoint takes deliveries again.
 */
export function startHeadParking({ database, logger, isLeader, loop, troubleWatch }: ParkingTools): Loop {
  const parkNext = makeParkingLook(database, troubleWatch);
  return startLoop({
    name: 'head-parking',
    pollMs: POLL_MS,
    logger,
    turn: async () => {
      const returned = await unparkHeads(database, UNPARKED_AT_ONCE);
      if (returned > 0) loop.wake();
      const hasMore = isLeader() && (await parkNext());
      return hasMore || returned >= UNPARKED_AT_ONCE;
    },
  });
}

/** Parks the next batch, page by page over all endpoints with something due; true: there is more to look at. */
function makeParkingLook(
  database: Database,
  troubleWatch: ParkingTools['troubleWatch'],
): () => Promise<boolean> {
  let afterEndpointId: string | null = null;
  let nextMs = Number.NEGATIVE_INFINITY;
  return async () => {
    if (afterEndpointId === null && performance.now() < nextMs) return false;
    const page = await findDueEndpoints(database, { afterEndpointId: afterEndpointId ?? '0', limit: PAGE });
    const endpointIds = page.filter(({ isOpen }) => !isOpen).map(({ endpointId }) => endpointId);
    const batch = { endpointIds, closedSeconds: CLOSED_SECONDS, limit: PARKED_AT_ONCE };
    const parked = endpointIds.length === 0 ? 0 : await parkHeads(database, batch);
    if (parked > 0)
      troubleWatch.closed(page.flatMap(({ isClosed, endpointId }) => (isClosed ? [endpointId] : [])));
    if (parked === PARKED_AT_ONCE) return true;
    afterEndpointId = page.length < PAGE ? null : (page.at(-1)?.endpointId ?? null);
    if (afterEndpointId === null) nextMs = performance.now() + LOOK_REST_MS;
    return afterEndpointId !== null;
  };
}
