import type { Knex } from 'knex';

/**
 * What is asked once a second about endpoints reads only those that it is about. The inbox is vacuumed when a share of
 * a few bodies is dead: each is taken in once and then only in the way of those that look for new ones.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create index webhook_endpoints_updated on webhook_endpoints (updated_at);
    create index webhook_endpoints_probing on webhook_endpoints (next_probe_at) where mode = 'probing';
    create index webhook_endpoints_failing on webhook_endpoints (failing_since) where failing_since is not null;
    create index webhook_endpoints_wanted_scope on webhook_endpoints (id) where wanted_order_scope is not null;
    ${ofInbox('set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)')}
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    drop index webhook_endpoints_updated, webhook_endpoints_probing, webhook_endpoints_failing,
      webhook_endpoints_wanted_scope;
    ${ofInbox('reset (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)')}
  `);
}

/** Partitions to come are made like the default one. */
function ofInbox(change: string): string {
  return `
    do $$
    declare
      part regclass;
    begin
      for part in select inhrelid::regclass from pg_inherits where inhparent = 'inbox'::regclass loop
        execute format('alter table %s ${change}', part);
      end loop;
    end $$;`;
}
