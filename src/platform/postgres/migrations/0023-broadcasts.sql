-- One template to many customers.

create table broadcasts (
  id bigint generated always as identity primary key,
  waba_id text not null references wabas,
  phone_number_id text not null,
  name text not null,
  -- JSON text: upstream's own object of a template message, which each recipient's parameters complete.
  template text not null,
  state text not null default 'draft'
    check (state in ('draft', 'scheduled', 'running', 'paused', 'done', 'cancelled')),
  -- Why it paused itself; null: it was paused by request, or is not paused.
  paused_because text,
  -- How many were added, the erased ones included.
  recipients integer not null default 0,
  send_at timestamptz,
  requested_by text not null,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  -- When it began or was last resumed: what had failed before does not pause it again.
  running_since timestamptz,
  finished_at timestamptz
);
create index broadcasts_waba on broadcasts (waba_id, id);
create index broadcasts_paused on broadcasts (id) where paused_because is not null;
create table broadcast_recipients (
  broadcast_id bigint not null references broadcasts on delete cascade,
  id bigint generated always as identity,
  waba_id text not null,
  -- Digits of a phone, or a business-scoped user id.
  recipient text not null,
  -- The tenant's own name for it.
  ref text,
  -- JSON text.
  parameters text,
  -- queued: it has its message, which says how far it is. suppressed: the customer wants none, and there is no message.
  state text not null default 'pending' check (state in ('pending', 'queued', 'suppressed')),
  message_id bigint,
  primary key (broadcast_id, id),
  unique (waba_id, recipient, broadcast_id)
);
create index broadcast_recipients_pending on broadcast_recipients (broadcast_id, id) where state = 'pending';
create unique index broadcast_recipients_message on broadcast_recipients (message_id) where message_id is not null;
alter table scheduled_messages add broadcast_id bigint;
create index scheduled_messages_broadcast on scheduled_messages (broadcast_id) where is_open and broadcast_id is not null;
