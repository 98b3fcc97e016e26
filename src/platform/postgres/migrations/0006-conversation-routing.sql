-- Several responders share a number: copies of what others have, and who has a conversation.
-- No statement rewrites or scans a table under a lock.

alter table messages drop constraint if exists messages_origin_check;
-- other_responder: a copy (standby) of a message in a conversation that another responder has, in either direction.
alter table messages add constraint messages_origin_check
  check (origin in ('business_app', 'history', 'other_responder')) not valid;

-- Who has the conversation by the latest handover, or by what we asked upstream for; null: there was none.
alter table conversations
  add column if not exists thread_owner text check (thread_owner in ('us', 'other', 'unknown', 'none')),
  add column if not exists thread_role text,
  add column if not exists thread_since timestamptz;

alter table upstream_troubles
  drop constraint if exists upstream_troubles_kind_check,
  add constraint upstream_troubles_kind_check
    check (kind in ('number_restricted', 'account_restricted', 'template_stopped', 'number_shared'));

-- The latest copy in a conversation, whatever came first.
create index concurrently messages_copies on messages (conversation_id, sent_at) where origin = 'other_responder';
