import type { Logger } from '../platform/logger.ts';
import { type Loop, startLoop } from '../platform/loop.ts';
import type { Database } from '../platform/postgres/database.ts';
import {
  forgetWorker,
  type RecentAttempts,
  reportWorker,
  type WorkerPeers,
} from '../platform/postgres/worker-processes.ts';

/**
 * Reports once a second that this process lives, and passes on which other workers do. A loop with nothing else to do:
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
  const loop = startLoop({
    name: 'heartbeat',
    logger: tools.logger,
    turn: async () => {
      tools.onPeers(await reportWorker(database, worker, runs?.share.lately(), tools.proxyTrouble?.()));
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
