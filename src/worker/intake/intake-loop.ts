import type { Database } from '../../database/database.ts';
import type { Logger } from '../logger.ts';
import { type Loop, startLoop } from '../loop.ts';
import { takeInBatch } from './intake-batch.ts';

/** How long a lost notification can delay a body. */
const POLL_MS = 250;

/** Takes in upstream bodies as they arrive. In every worker process; one at a time does the work. */
export function startIntake(database: Database, logger: Logger): Loop {
  return startLoop({
    name: 'intake',
    pollMs: POLL_MS,
    logger,
    turn: async () => (await takeInBatch(database, logger)) > 0,
  });
}
