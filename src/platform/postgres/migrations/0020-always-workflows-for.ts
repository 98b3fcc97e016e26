import type { Knex } from 'knex';

/** Event types of an endpoint whose deliveries always have a run; null: as `delivery_workflows` says. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table webhook_endpoints add always_workflows_for text[]');
}
