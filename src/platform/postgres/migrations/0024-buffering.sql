-- Endpoints that get the messages of a conversation together (docs/decisions/0103).

-- How long a conversation must be quiet until its messages go out together; null or 0: each goes out at once.
alter table webhook_endpoints
  add column if not exists buffer_seconds integer,
  add column if not exists buffer_max_seconds integer,
  add column if not exists buffer_max_messages integer,
  add column if not exists buffer_types text[];
-- The first delivery of the batch that it goes out with; its id is that of the event of the batch too.
alter table deliveries add column if not exists batch_id uuid;
-- The deliveries that this head sends in one request, itself the first; null: itself alone.
alter table delivery_queue add column if not exists batch uuid[];

-- Few at any time: next_attempt_at is when to look at a buffered head again, null: now.
create index concurrently delivery_queue_unreleased on delivery_queue (next_attempt_at) where state = 'unreleased';
