import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';
import { eventually } from './webhook-receiver.ts';

/** Runs a vacuum when no autovacuum has a snapshot of this database: that would keep all that was deleted. */
export async function vacuumed(database: Database, statement = 'vacuum analyze'): Promise<void> {
  const running = `select 1 from pg_stat_activity
                    where datname = current_database() and backend_type = 'autovacuum worker'`;
  await eventually('no autovacuum runs', async () => (await query(database, running)).length === 0);
  await database.raw(statement);
}
