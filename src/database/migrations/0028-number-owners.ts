import type { Knex } from 'knex';

/** Counts how often the owners of numbers may have changed, so that intake need not ask for them in each batch. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table number_owners (version bigint not null, only_row boolean primary key default true check (only_row));
    insert into number_owners (version) values (1);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop table number_owners');
}
