import type { Knex } from 'knex';

/**
 * What failed for good, by hour, so that it is told in a bounded number of alerts; whether it was told that an endpoint
 * fails; a pace of its own for a phone number; and orders numbered per tenant.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table endpoint_failures (
      endpoint_id bigint not null,
      hour timestamptz not null,
      failed integer not null,
      told integer not null default 0,
      primary key (endpoint_id, hour)
    );
    create index endpoint_failures_untold on endpoint_failures (endpoint_id) where told < failed;

    alter table webhook_endpoints
      add column failing_told boolean not null default false,
      add column failures_told_at timestamptz;

    alter table endpoint_alerts drop constraint endpoint_alerts_alert_check;
    alter table endpoint_alerts add constraint endpoint_alerts_alert_check
      check (alert in ('failing', 'disabled', 'recovered', 'deliveries_failed'));

    alter table phone_numbers add column messages_per_second integer
      check (messages_per_second between 1 and 1000);

    -- A number over all tenants would tell each of them how many orders the others have.
    alter table tenants add column last_order_number bigint not null default 0;
    alter table orders add column number bigint;
    update orders o set number = n.number
      from (select id, row_number() over (partition by w.tenant_id order by id) as number
              from orders join wabas w using (waba_id)) as n
     where n.id = o.id;
    update tenants t set last_order_number = coalesce((
      select max(o.number) from orders o join wabas w using (waba_id) where w.tenant_id = t.id), 0);
    alter table orders alter column number set not null;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table orders drop column number;
    alter table tenants drop column last_order_number;
    alter table phone_numbers drop column messages_per_second;
    delete from endpoint_alerts where alert = 'deliveries_failed';
    alter table endpoint_alerts drop constraint endpoint_alerts_alert_check;
    alter table endpoint_alerts add constraint endpoint_alerts_alert_check
      check (alert in ('failing', 'disabled', 'recovered'));
    alter table webhook_endpoints drop column failing_told, drop column failures_told_at;
    drop table endpoint_failures;
  `);
}
