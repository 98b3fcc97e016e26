import type { Knex } from 'knex';

/** Media that upstream never had has no upstream id. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table media alter column upstream_media_id drop not null');
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    delete from media where upstream_media_id is null;
    alter table media alter column upstream_media_id set not null;
  `);
}
