import type { Knex } from 'knex';

/** Housekeeping empties the table at once. To return its pages, a vacuum would keep every body from being ingested. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table usage_changes set (vacuum_truncate = off)');
}
