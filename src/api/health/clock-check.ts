import type { Logger } from 'pino';
import type { Database } from '../../platform/postgres/database.ts';
import { MOST_CLOCK_SKEW_MS, readClockSkewMs } from '../../platform/postgres/server-checks.ts';

/** Rejects when the clocks of this process and of the database differ by more than a minute. */
export async function checkClock(database: Database): Promise<void> {
  const skewMs = await readClockSkewMs(database);
  if (Math.abs(skewMs) > MOST_CLOCK_SKEW_MS) throw new ClockSkew(skewMs);
}

/** Says at the start when they do. Nothing is refused: whose clock is wrong cannot be told from here. */
export async function warnOfClock(database: Database, logger: Logger): Promise<void> {
  try {
    await checkClock(database);
  } catch (error) {
    if (error instanceof ClockSkew) logger.warn(error.message);
  }
}

class ClockSkew extends Error {
  constructor(skewMs: number) {
    const seconds = Math.round(Math.abs(skewMs) / 1_000);
    super(
      `the database's clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} this process's: set them`,
    );
  }
}
