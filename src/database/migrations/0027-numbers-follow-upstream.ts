import type { Knex } from 'knex';

/** Numbers come and go with upstream; bodies for one that is not known yet wait; tenants, WABAs and numbers can go. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table tenants add column removed_at timestamptz;
    alter table wabas add column removed_at timestamptz,
      -- When upstream was last asked for the numbers, and what came in the way; null: nothing.
      add column numbers_asked_at timestamptz, add column numbers_problem text;
    -- detached: an operator took it away, so that upstream's list does not bring it back.
    alter table phone_numbers add column removed_at timestamptz,
      add column detached boolean not null default false;

    -- waiting = upstream is asked for a phone number of it; rows of waiting_bodies say which.
    alter table inbox drop constraint inbox_state_check;
    alter table inbox add constraint inbox_state_check
      check (state in ('new', 'done', 'set_aside', 'failed', 'waiting'));
    -- refused: upstream does not list the number; it is taken in all the same should that change.
    create table waiting_bodies (
      waba_id text not null references wabas,
      phone_number_id text not null,
      received_day date not null,
      inbox_id bigint not null,
      refused boolean not null default false,
      waiting_since timestamptz not null default now(),
      primary key (waba_id, phone_number_id, received_day, inbox_id)
    );
    create index waiting_bodies_day on waiting_bodies (received_day);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    drop table waiting_bodies;
    update inbox set state = 'set_aside' where state = 'waiting';
    alter table inbox drop constraint inbox_state_check;
    alter table inbox add constraint inbox_state_check check (state in ('new', 'done', 'set_aside', 'failed'));
    alter table phone_numbers drop column removed_at, drop column detached;
    alter table wabas drop column removed_at, drop column numbers_asked_at, drop column numbers_problem;
    alter table tenants drop column removed_at;
  `);
}
