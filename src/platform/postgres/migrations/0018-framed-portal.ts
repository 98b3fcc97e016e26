import type { Knex } from 'knex';

/** The origin of the product whose page shows the portal of a link in a frame. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table portal_links add embed_origin text');
}
