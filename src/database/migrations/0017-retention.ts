import type { Knex } from 'knex';

/**
 * What finds ordering keys that had no event for long. A summary of blocks is small, and an update of the column stays
 * within its page.
 */
export async function up(knex: Knex): Promise<void> {
  // One that was interrupted leaves an index that nothing uses.
  await knex.raw('drop index concurrently if exists ordering_keys_age');
  await knex.raw('create index concurrently ordering_keys_age on ordering_keys using brin (updated_at)');
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop index ordering_keys_age');
}

/** An index on a large table must not keep events waiting. */
export const config = { transaction: false };
