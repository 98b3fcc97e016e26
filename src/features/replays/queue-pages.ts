import { setTimeout as sleep } from 'node:timers/promises';
import { openReplayDeliveries } from '../../engine/queue/replay-queue.ts';
import { findOpenDeliveries } from '../../engine/queue/sweep.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { queueReplayPage } from './replay-steps.ts';
import type { Replay } from './replay-store.ts';

export type QueuePagesTools = {
  database: Database;
  limit: QueueLimit;
  onPage: (replay: Replay) => void;
  throwIfEnded: () => void;
};

/** `waitMs` is null when the workflow has something to hear: the end, a pause, or much progress. */
export type QueuePagesEnd = { replay: Replay; waitMs: number | null; reason: string };

/** Within a worker's grace at shutdown, so that a run ends by itself. */
const LONGEST_RUN_MS = 15_000;
const GO_ON_MS = 1;
/** An endpoint that is slow to make room is looked at from outside: a waiting activity would hold its slot. */
const PATIENCE_MS = 3_000;
const REFRESH_MS = 250;
const LOOK_AGAIN_MS = 10_000;
const REPORT_EVERY = 50_000;

/** Endpoints take turns; a busy one delays no other. */
export async function queuePages(
  tools: QueuePagesTools,
  start: Replay,
  reported: number,
): Promise<QueuePagesEnd> {
  const startMs = performance.now();
  let replay = start;
  let movedMs = startMs;
  for (;;) {
    tools.throwIfEnded();
    const turn = await queueTurn(tools, replay);
    replay = turn.replay;
    const isOver = replay.state !== 'running' || replay.cursor.endpoints.length === 0;
    if (isOver || replay.queued - reported >= REPORT_EVERY) return { replay, waitMs: null, reason: '' };
    const nowMs = performance.now();
    if (turn.moved) movedMs = nowMs;
    else if (nowMs - movedMs > PATIENCE_MS)
      return { replay, waitMs: LOOK_AGAIN_MS, reason: waitReason(replay) };
    else await sleep(REFRESH_MS);
    if (nowMs - startMs > LONGEST_RUN_MS) return { replay, waitMs: GO_ON_MS, reason: 'Going on.' };
    await tools.limit.refresh();
  }
}

async function queueTurn(
  { database, limit, onPage, throwIfEnded }: QueuePagesTools,
  start: Replay,
): Promise<{ replay: Replay; moved: boolean }> {
  let replay = start;
  let moved = false;
  for (const { id: endpointId } of start.cursor.endpoints) {
    if (!limit.hasRoom(endpointId)) continue;
    throwIfEnded();
    const step = await queueReplayPage(database, { wabaId: start.wabaId, replayId: start.id, endpointId });
    if (step === null) continue;
    replay = step.replay;
    if (replay.state !== 'running') break;
    moved = true;
    limit.add(endpointId, step.queuedIds);
    onPage(replay);
  }
  return { replay, moved };
}

function waitReason({ cursor }: Replay): string {
  const ids = cursor.endpoints.map(({ id }) => id);
  const named = ids.slice(0, 10).join(', ') + (ids.length > 10 ? ' and others' : '');
  return `Waiting for endpoint ${named} to work off what is in the queue.`;
}

/** A long replay must not fill the queue. */
type QueueLimit = {
  hasRoom(endpointId: string): boolean;
  add(endpointId: string, deliveryIds: readonly string[]): void;
  refresh(): Promise<void>;
};

/**
 * Ids of the pending deliveries are kept, because looking for a few thousand known ids costs milliseconds however long the replay and the
 * queue are. A page may exceed `maxOpen`.
 */
export async function openQueueLimit(
  database: Database,
  replay: Replay,
  maxOpen: number,
): Promise<QueueLimit> {
  const open = Map.groupBy(await openReplayDeliveries(database, replay), ({ endpointId }) => endpointId);
  const openIds = new Map([...open].map(([id, own]) => [id, own.map(({ deliveryId }) => deliveryId)]));
  const idsOf = (endpointId: string) => openIds.get(endpointId) ?? [];
  return {
    hasRoom: (endpointId) => idsOf(endpointId).length < maxOpen,
    add: (endpointId, deliveryIds) => openIds.set(endpointId, [...idsOf(endpointId), ...deliveryIds]),
    refresh: async () => {
      for (const [endpointId, deliveryIds] of openIds) {
        if (deliveryIds.length > 0)
          openIds.set(endpointId, [...(await findOpenDeliveries(database, deliveryIds))]);
      }
    },
  };
}
