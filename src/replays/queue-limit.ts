import { openReplayDeliveries, stillQueued } from '../deliveries/queue/replay-queue.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { Replay } from './replay-store.ts';

/** How much of a replay each endpoint has in the queue: a long replay must not fill the queue. */
export type QueueLimit = {
  hasRoom(endpointId: string): boolean;
  add(endpointId: string, deliveryIds: readonly string[]): void;
  /** Looks which deliveries are settled by now. */
  refresh(): Promise<void>;
};

/**
 * Counts the open deliveries of a replay. Their ids are kept, because looking for a few thousand known ids costs
 * milliseconds however long the replay and the queue are. A page may exceed `maxOpen`.
 */
export async function openQueueLimit(
  database: Database,
  replay: Replay,
  maxOpen: number,
): Promise<QueueLimit> {
  const openIds = new Map<string, string[]>();
  const add = (endpointId: string, deliveryIds: readonly string[]) => {
    const known = openIds.get(endpointId);
    if (known === undefined) openIds.set(endpointId, [...deliveryIds]);
    else known.push(...deliveryIds);
  };
  for (const { endpointId, deliveryId } of await openReplayDeliveries(database, replay)) {
    add(endpointId, [deliveryId]);
  }
  return {
    hasRoom: (endpointId) => (openIds.get(endpointId)?.length ?? 0) < maxOpen,
    add,
    refresh: async () => {
      for (const [endpointId, deliveryIds] of openIds) {
        if (deliveryIds.length > 0) openIds.set(endpointId, await stillQueued(database, deliveryIds));
      }
    },
  };
}
