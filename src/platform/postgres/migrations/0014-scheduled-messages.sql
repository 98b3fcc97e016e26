-- Messages that are sent at a later time, and workflows that start then.

create table scheduled_messages (
  message_id bigint primary key references outbound_messages on delete cascade,
  waba_id text not null,
  phone_number_id text not null,
  send_at timestamptz not null,
  -- Null: it is retried as long as any message.
  not_after timestamptz,
  -- Its turn among the scheduled messages of its number; null until it is drawn.
  paced_at timestamptz,
  -- False: its sending has begun, or it has failed or was cancelled.
  is_open boolean not null default true,
  cancelled_at timestamptz
);
create index scheduled_messages_open on scheduled_messages (waba_id, send_at, message_id) where is_open;
-- When Temporal starts the workflow; null: at once.
alter table workflow_tasks add starts_at timestamptz;
