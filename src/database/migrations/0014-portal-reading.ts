import type { Knex } from 'knex';

/**
 * What the pages of the portal look for. Deliveries themselves get no further index: each would be written for every
 * event. Attempts that failed are few, are never changed, and lead to the deliveries that somebody looks for.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create index attempts_failed on attempts (waba_id, delivery_id)
      where (status_code between 200 and 299) is not true;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop index attempts_failed;');
}
