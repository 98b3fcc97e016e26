import type { Knex } from 'knex';

/**
 * What intake remembers from one batch to the next (whose a number is, where the bodies that wait begin) is of an epoch.
 * Whoever changes that begins a new one under the intake lock.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table intake_epoch (epoch bigint not null, only_row boolean primary key default true check (only_row));
    insert into intake_epoch (epoch) values (1);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop table intake_epoch');
}
