import type { Knex } from 'knex';

/** Media that upstream never had has no upstream id; a group's messages have a conversation of their own. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table media alter column upstream_media_id drop not null;

    -- A conversation is with one customer or with a group.
    alter table conversations alter column contact_id drop not null, add column group_id text,
      add constraint conversations_with_whom check (num_nonnulls(contact_id, group_id) = 1);
    create unique index conversations_group on conversations (phone_number_id, group_id) where group_id is not null;
    -- Who of the group wrote it: the user id, else the phone.
    alter table messages add column group_sender text;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table messages drop column group_sender;
    delete from conversations where group_id is not null;
    alter table conversations drop constraint conversations_with_whom, drop column group_id,
      alter column contact_id set not null;
    delete from media where upstream_media_id is null;
    alter table media alter column upstream_media_id set not null;
  `);
}
