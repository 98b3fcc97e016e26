import type { Knex } from 'knex';

/** What housekeeping does when, and an index that finds what is old without reading what is not. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table housekeeping_steps (
      step text primary key,
      -- Nobody begins the step before then: its last turn is not long ago, or still under way.
      next_at timestamptz not null,
      succeeded_at timestamptz,
      -- Null after a success.
      failing_since timestamptz,
      error text
    );
    -- Rows are deleted from the old end, and their room is used again: a summary of blocks would soon match all of them.
    drop index dedup_keys_age;
    create index dedup_keys_age on dedup_keys (first_seen_at);
    -- Mostly empty; its days are asked for all the same.
    create index attempts_default_day on attempts_default (day);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    drop index attempts_default_day, dedup_keys_age;
    create index dedup_keys_age on dedup_keys using brin (first_seen_at);
    drop table housekeeping_steps;
  `);
}
