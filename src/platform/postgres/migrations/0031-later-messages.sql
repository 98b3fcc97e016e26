-- A scheduled message has the place in its conversation at which it was stored, and is sent later.

-- The scheduled message that was sent last, and when.
alter table conversations add column if not exists last_later_id bigint, add column if not exists last_later_at timestamptz;
