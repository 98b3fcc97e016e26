-- What the sender of alerts and operation events knows of each. What an earlier release adds is due at once.

-- The next attempt; while one is under way, the end of its lease.
alter table alert_notices add column if not exists due_at timestamptz not null default now();
-- Tenants whose events wait while those of others go on. An earlier release sends nothing of these.
alter table operations_hooks add column if not exists held jsonb not null default '[]';

create index concurrently alert_notices_due on alert_notices (due_at) where delivered_at is null and given_up_at is null;
