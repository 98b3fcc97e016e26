import type { Knex } from 'knex';

/** Counts of a tenant at which operators are alerted: an array of metric, period and threshold. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table tenants add usage_alerts jsonb not null default '[]'`);
}
