import type { Knex } from 'knex';

/** Which call of upstream the marketing templates of a number go to. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table phone_numbers add marketing_route text not null default 'auto'
                    check (marketing_route in ('auto', 'always', 'never'))`);
}
