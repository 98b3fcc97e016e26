import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';
import { eventually } from './webhook-receiver.ts';

/** No table of the database is vacuumed or analysed but by the test from now on. */
const WITHOUT_AUTOVACUUM = `do $$
declare one regclass;
begin
  for one in select c.oid from pg_class c
              where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
                and not coalesce(c.reloptions @> '{autovacuum_enabled=false}', false)
  loop
    execute format('alter table %s set (autovacuum_enabled = false, toast.autovacuum_enabled = false)', one);
  end loop;
end $$`;

/**
 * Runs a vacuum beside which no autovacuum runs, of any table of this database: its snapshot would keep all that was deleted.
 */
export async function vacuumed(database: Database, statement = 'vacuum analyze'): Promise<void> {
  const running = `select 1 from pg_stat_activity
                    where datname = current_database() and backend_type = 'autovacuum worker'`;
  await database.raw(WITHOUT_AUTOVACUUM);
  await eventually('no autovacuum runs', async () => (await query(database, running)).length === 0);
  await database.raw(statement);
}
