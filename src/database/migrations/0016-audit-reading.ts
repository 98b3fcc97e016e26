import type { Knex } from 'knex';

/** What concerns a tenant as a whole, such as its users: few entries among many of its WABAs. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('create index audit_log_of_tenant on audit_log (tenant_id, id) where waba_id is null;');
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop index audit_log_of_tenant;');
}
