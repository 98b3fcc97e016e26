import { findRecovered, isRecovered, noteBroughtForward } from '../../endpoints/endpoint-backlog.ts';
import type { Logger } from '../../platform/logger.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { bringForward } from '../queue/retry.ts';

const POLL_MS = 1_000;
const ENDPOINTS_AT_ONCE = 100;

/** A retry that comes so soon by itself is left to its schedule. */
const SOON_SECONDS = 30;

type ReturnTools = {
  database: Database;
  logger: Logger;
  /** Whether this process does what only one process has to do. */
  isLeader: () => boolean;
  /** Deliveries became claimable. */
  onReleased: () => void;
};

/** In one process of all: brings the retries of endpoints forward that are back, so that nothing of them waits for hours. */
export function startBacklogReturn({ database, logger, isLeader, onReleased }: ReturnTools): Loop {
  return startLoop({
    name: 'backlog-return',
    pollMs: POLL_MS,
    logger,
    turn: async () => {
      if (!isLeader()) return false;
      const recovered = await findRecovered(database, ENDPOINTS_AT_ONCE);
      for (const endpointId of recovered) {
        const retried = await returnBacklog(database, endpointId);
        if (retried === 0) continue;
        onReleased();
        logger.info({ endpointId, retried }, 'an endpoint is back: its retries were brought forward');
      }
      return recovered.length === ENDPOINTS_AT_ONCE;
    },
  });
}

/** Brings forward what waits because an endpoint was in trouble, until it fails again. Returns how many. */
async function returnBacklog(database: Database, endpointId: string): Promise<number> {
  const returned = await bringForward(database, endpointId, {
    soonSeconds: SOON_SECONDS,
    mayGoOn: (trx) => isRecovered(trx, endpointId),
  });
  await noteBroughtForward(database, endpointId, returned);
  return returned.retried;
}
