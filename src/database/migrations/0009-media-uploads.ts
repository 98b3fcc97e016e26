import type { Knex } from 'knex';

/** Files of tenants for sends, what was read, and how to find the events and the order message of a payment. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- When the tenant marked an inbound message as read.
    alter table messages add column read_at timestamptz;

    -- uploading: its bytes are on their way, or were lost with the process; deleted: its object is still to be removed.
    create table media_uploads (
      id uuid primary key,
      waba_id text not null references wabas,
      state text not null default 'uploading' check (state in ('uploading', 'ready', 'deleted')),
      object_key text not null unique,
      media_type text,
      mime_type text,
      file_name text,
      size_bytes bigint,
      sha256 text,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null
    );
    create index media_uploads_expiry on media_uploads (expires_at);
    create index media_uploads_open on media_uploads (created_at) where state <> 'ready';

    -- What upstream calls a file for one of the numbers. Until uploading_until somebody is giving it to upstream.
    create table media_upstream_ids (
      media_id uuid not null references media_uploads on delete cascade,
      phone_number_id text not null references phone_numbers,
      upstream_media_id text,
      expires_at timestamptz,
      uploading_until timestamptz,
      primary key (media_id, phone_number_id)
    );

    alter table outbound_messages
      -- Files of ours in the message; null: none.
      add column media_ids uuid[],
      -- Of an order_details message.
      add column payment_reference text,
      add column payment_configuration text;
    create index outbound_messages_payment on outbound_messages (waba_id, payment_reference, message_id)
      where payment_reference is not null;

    -- The lane of a payment event is its reference id.
    create index events_payment on events (waba_id, lane, id) where event_type = 'payment';
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    drop index events_payment;
    alter table outbound_messages
      drop column media_ids, drop column payment_reference, drop column payment_configuration;
    drop table media_upstream_ids, media_uploads;
    alter table messages drop column read_at;
  `);
}
