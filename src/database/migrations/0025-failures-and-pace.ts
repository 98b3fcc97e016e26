import type { Knex } from 'knex';

/**
 * What failed for good, by hour, so that it is told in a bounded number of alerts; whether it was told that an endpoint
 * fails; and a pace of its own for a phone number.
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
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table phone_numbers drop column messages_per_second;
    delete from endpoint_alerts where alert = 'deliveries_failed';
    alter table endpoint_alerts drop constraint endpoint_alerts_alert_check;
    alter table endpoint_alerts add constraint endpoint_alerts_alert_check
      check (alert in ('failing', 'disabled', 'recovered'));
    alter table webhook_endpoints drop column failing_told, drop column failures_told_at;
    drop table endpoint_failures;
  `);
}
