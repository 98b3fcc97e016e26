import type { Knex } from 'knex';

/** Outbound messages: their sending, its pace, and the keys under which a request is carried out once. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- An outbound message has no upstream id until upstream has accepted it.
    alter table messages alter column upstream_id drop not null;

    create table outbound_messages (
      message_id bigint primary key references messages on delete cascade,
      waba_id text not null references wabas,
      phone_number_id text not null references phone_numbers,
      -- Digits of a phone, or a business-scoped user id.
      recipient text not null,
      state text not null default 'queued'
        check (state in ('queued', 'sending', 'accepted', 'failed', 'unknown')),
      attempts integer not null default 0,
      -- The times that the pace of the recipient and of the number gave it; null until asked for.
      pair_at timestamptz,
      number_at timestamptz,
      -- An attempt that is not over by then is lost.
      sending_until timestamptz,
      -- As upstream answered; messages.upstream_id has it too unless another message had it first.
      upstream_id text,
      upstream_status text,
      error text,
      created_at timestamptz not null default now(),
      finished_at timestamptz
    ) with (fillfactor = 80);

    -- When the next message of a number (recipient '') or to one of its recipients may leave.
    create table send_pacing (
      phone_number_id text not null references phone_numbers,
      recipient text not null,
      free_at timestamptz not null,
      primary key (phone_number_id, recipient)
    ) with (fillfactor = 50);
    create index send_pacing_free on send_pacing (free_at);

    -- Phones that upstream knows under other digits (Brazil, Mexico), as its answers taught.
    create table phone_aliases (
      waba_id text not null references wabas,
      phone text not null,
      wa_id text not null,
      primary key (waba_id, phone)
    );

    create table idempotency_keys (
      waba_id text not null references wabas,
      operation text not null,
      key text not null,
      fingerprint bytea not null,
      -- Set by the transaction that stores the key.
      message_id bigint,
      -- Until then the request that brought the key is taken to be under way.
      held_until timestamptz not null,
      answer_status integer,
      answer_body text,
      created_at timestamptz not null default now(),
      primary key (waba_id, operation, key)
    );
    create index idempotency_keys_age on idempotency_keys (created_at);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    drop table idempotency_keys, phone_aliases, send_pacing, outbound_messages;
    delete from messages where upstream_id is null;
    alter table messages alter column upstream_id set not null;
  `);
}
