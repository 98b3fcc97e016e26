-- API keys get limits of what they send and two scopes more, and a vacuum no longer releases the empty ends of tables that
-- fill and empty all the time: it locks all others out meanwhile. No statement of it rewrites a table.

alter table api_keys
  drop constraint api_keys_scopes_check,
  add constraint api_keys_scopes_check check (scopes <> '{}'
    and scopes <@ '{read,read_events,send,manage_webhooks,export,erase,graph,graph_manage,graph_query}'),
  -- What it may send, and what it sent on the UTC day of its last message; null: no limit, and nothing is counted.
  add max_messages_per_day integer check (max_messages_per_day > 0),
  add recipients text not null default 'any' check (recipients in ('any', 'open_conversations')),
  add sent_day date,
  add sent_messages integer not null default 0;

alter table api_key_requests
  add max_messages_per_day integer check (max_messages_per_day > 0),
  add recipients text not null default 'any' check (recipients in ('any', 'open_conversations'));

alter table waiting_bodies set (vacuum_truncate = off);
alter table history_pieces set (vacuum_truncate = off, toast.vacuum_truncate = off);
alter table delivery_queue set (vacuum_truncate = off);
alter table workflow_tasks set (vacuum_truncate = off);
alter table send_pacing set (vacuum_truncate = off);
