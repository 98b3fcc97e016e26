import type { Knex } from 'knex';

/** Lists of events, and scopes of API keys. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- Ids of events sort by time, so this is the order of the list; a day is one partition.
    create index events_of_waba on events (waba_id, id);
    -- Few at any time: a list in order waits for them.
    create index events_not_released on events (waba_id, id) where body is null;

    alter table api_keys add column scopes text[] not null default '{read,send,manage_webhooks}'
      check (scopes <> '{}' and scopes <@ '{read,send,manage_webhooks}');
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table api_keys drop column scopes;
    drop index events_not_released, events_of_waba;
  `);
}
