import type { Config } from '../platform/config/config.ts';
import { type DatabasePool, openDatabase } from '../platform/postgres/database.ts';
import { REHEARSED_CONNECTIONS } from './rehearsal.ts';

/** The least connections of a pool: one may wait for a lock that the other's transaction holds. */
const LEAST_POOL = 2;

/**
 * Half of the connections are for ingesting and delivering, which includes to release retries and ended leases. Activities,
 * housekeeping, alerts, scrapes and the loops of Temporal share the other half, so that no number of them makes a delivery, or a
 * retry, wait.
 */
export function openDatabases({ database }: Pick<Config, 'database'>): {
  database: DatabasePool;
  upkeepDatabase: DatabasePool;
} {
  const most = Math.max(database.poolMax, 2 * LEAST_POOL);
  const shared = { ...database, fixedPlans: true };
  return {
    database: openDatabase({
      ...shared,
      applicationName: 'heliograph-worker',
      poolMin: REHEARSED_CONNECTIONS,
      poolMax: Math.ceil(most / 2),
    }),
    upkeepDatabase: openDatabase({
      ...shared,
      applicationName: 'heliograph-upkeep',
      poolMax: Math.floor(most / 2),
    }),
  };
}
