import type { Logger } from '../../platform/logger.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { healthOf, QUESTIONS } from './questions.ts';

/** Logs that the clocks are apart. Nothing is refused: either may be wrong. */
export async function warnOfClock(database: Database, logger: Pick<Logger, 'warn'>): Promise<void> {
  const skewMs = await QUESTIONS.clock.ask({ database });
  if (healthOf('clock', skewMs) === 'up') return;
  const apart = `${Math.round(Math.abs(skewMs) / 1_000)} s ${skewMs > 0 ? 'ahead of' : 'behind'}`;
  logger.warn({ databaseAheadMs: skewMs }, `the database's clock is ${apart} this process's: set them`);
}
