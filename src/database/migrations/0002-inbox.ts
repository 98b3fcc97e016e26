import type { Knex } from 'knex';

/** Raw upstream bodies, the keys that make each upstream item count once, and counts of what emits no event. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- state: new = not yet taken in; done; set_aside = taken in, but some items emitted nothing (notes say why);
    -- failed = could not be taken in, kept for "admin inbox retry".
    create table inbox (
      received_day date not null default (now() at time zone 'utc')::date,
      id bigint generated always as identity,
      body bytea not null,
      state text not null default 'new' check (state in ('new', 'done', 'set_aside', 'failed')),
      notes jsonb,
      received_at timestamptz not null default now(),
      processed_at timestamptz,
      primary key (received_day, id)
    ) partition by range (received_day);
    create index inbox_new on inbox (id) where state = 'new';
    create index inbox_not_done on inbox (id) where state in ('set_aside', 'failed');

    -- A SHA-256 of the upstream item's identity. Rows outlive every upstream redelivery (7 days) and more.
    create table dedup_keys (
      key bytea primary key,
      first_seen_at timestamptz not null default now()
    );
    create index dedup_keys_age on dedup_keys using brin (first_seen_at);

    create table set_aside_counts (
      day date not null,
      reason text not null,
      field text not null,
      waba_id text not null,
      count bigint not null,
      primary key (day, reason, field, waba_id)
    );
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop table set_aside_counts, dedup_keys, inbox');
}
