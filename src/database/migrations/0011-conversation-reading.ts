import type { Knex } from 'knex';

/** Indexes for reading conversations over the API. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- The walk by id as before; filters and times are judged in the index, so that what they pass over is cheap.
    drop index messages_conversation;
    create index messages_conversation on messages (conversation_id, id) include (created_at, direction, type);

    -- Reactions, edits and deletions by the message they are about; other messages are not in it.
    create index messages_target on messages (phone_number_id, target_id, direction, type, id)
      where target_id is not null;

    create index conversations_activity_of_number on conversations (phone_number_id, last_message_at desc, id desc)
      where merged_into is null;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    drop index conversations_activity_of_number, messages_target, messages_conversation;
    create index messages_conversation on messages (conversation_id, id);
  `);
}
