import type { Knex } from 'knex';

/**
 * What was reported of payments, for longer than events are kept; and placeholders that the real message followed, which
 * stay where they were listed.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table payment_reports (
      event_uuid uuid primary key,
      waba_id text not null references wabas,
      phone_number_id text not null,
      -- Of the payment's events: its reference id.
      lane text not null,
      event_id text not null,
      -- The event's data as it is in its body.
      data text not null,
      created_at timestamptz not null default now()
    );
    create index payment_reports_payment on payment_reports (waba_id, lane, event_uuid);
    insert into payment_reports (event_uuid, waba_id, phone_number_id, lane, event_id, data, created_at)
    select id, waba_id, phone_number_id, lane, event_id, cast(convert_from(body, 'UTF8') as json) -> 'data', created_at
      from events where event_type = 'payment' and body is not null;
    drop index events_payment;

    -- The upstream id of a placeholder, once another message has it.
    alter table messages add column superseded_upstream_id text;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    create index events_payment on events (waba_id, lane, id) where event_type = 'payment';
    drop table payment_reports;
    alter table messages drop column superseded_upstream_id;
  `);
}
