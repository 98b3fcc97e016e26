import type { Logger } from '../platform/logger.ts';
import { type Loop, startLoop } from '../platform/loop.ts';
import { LOOPS } from '../platform/loops.ts';
import type { Database } from '../platform/postgres/database.ts';
import {
  forgetWorker,
  type RecentAttempts,
  reportWorker,
  standsAside,
  type WorkerPeers,
} from '../platform/postgres/worker-processes.ts';

/** Of a worker beside the leader: it is taken for dead no sooner than its second heartbeat is missing. */
const ASIDE_EVERY_MS = 2_000;

/**
 * Reports every second or two that this process lives, and passes on which other workers do. A loop with nothing else to do:
 * work that takes seconds would make this process seem dead, and the others would take over its share and its duties.
 */
export function startHeartbeat(tools: {
  database: Database;
  logger: Logger;
  worker: string;
  /** What it did lately; not given: nothing. */
  runs?: { share: { lately(): RecentAttempts } };
  proxyTrouble?: () => string | null;
  onPeers: (peers: WorkerPeers) => void;
}): Loop {
  const { database, worker, runs } = tools;
  let isAside = false;
  const loop = startLoop({
    name: 'heartbeat',
    logger: tools.logger,
    pollMs: () => (isAside ? ASIDE_EVERY_MS : LOOPS.heartbeat.pollMs),
    turn: async () => {
      const peers = await reportWorker(database, worker, runs?.share.lately(), tools.proxyTrouble?.());
      isAside = standsAside(peers);
      tools.onPeers(peers);
      return false;
    },
  });
  return {
    ...loop,
    stop: async () => {
      await loop.stop();
      await forgetWorker(database, worker).catch(() => undefined);
    },
  };
}
