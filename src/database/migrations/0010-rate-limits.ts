import type { Knex } from 'knex';

/**
 * How many requests each key has made in its window, counted by rate-limiter-flexible (its columns, in its order).
 * Unlogged: counts need not survive a crash of the server, and so cost no write-ahead log; every window is over within
 * a minute anyway.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create unlogged table rate_limits (
      key text primary key,
      points integer not null default 0,
      -- Milliseconds since 1970.
      expire bigint
    ) with (fillfactor = 50);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop table rate_limits;');
}
