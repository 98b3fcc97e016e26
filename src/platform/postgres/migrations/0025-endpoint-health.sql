-- The state of an endpoint gets a separate row, so that noting how attempts went locks no settings. An insert of an endpoint makes the
-- row. The columns of webhook_endpoints stay for one release, with failures_notified_at, which is unused: what processes of the release
-- before write there is carried over by the trigger. The next release drops the columns, their indexes, the trigger for updates, and
-- src/engine/endpoint/former-columns.ts.

lock table webhook_endpoints in share row exclusive mode;
create table endpoint_health (
  endpoint_id bigint not null references webhook_endpoints on delete cascade,
  mode text not null check (mode in ('open', 'probing', 'paused', 'disabled')),
  mode_reason text,
  mode_changed_at timestamptz not null,
  failing_since timestamptz,
  -- When failing_since last ended with a success.
  recovered_at timestamptz,
  next_probe_at timestamptz,
  probe_failures integer not null,
  -- Whether the tenant was notified that it fails or was disabled for that.
  failing_notified boolean not null,
  -- Whether some of its deliveries are parked in the queue.
  has_parked boolean not null,
  -- Whether deliveries may wait for retries because it was in trouble, when those are brought forward (null: it has not
  -- accepted a delivery since), and when some last were (docs/decisions/0022).
  has_backlog boolean not null,
  backlog_due_at timestamptz,
  backlog_retried_at timestamptz,
  -- Looks for something to claim read the mode of hundreds of endpoints, and no other page.
  primary key (endpoint_id) include (mode)
);
insert into endpoint_health (endpoint_id,
    mode, mode_reason, mode_changed_at, failing_since, recovered_at, next_probe_at,
    probe_failures, failing_notified, has_parked, has_backlog, backlog_due_at, backlog_retried_at)
  select id,
    mode, mode_reason, mode_changed_at, failing_since, recovered_at, next_probe_at,
    probe_failures, failing_notified, has_parked, has_backlog, backlog_due_at, backlog_retried_at
  from webhook_endpoints;
create index endpoint_health_in_trouble on endpoint_health (endpoint_id) where has_backlog and backlog_due_at is null;
create index endpoint_health_backlog_due on endpoint_health (backlog_due_at) where backlog_due_at is not null;
create index endpoint_health_to_unpark on endpoint_health (endpoint_id) where has_parked and mode = 'open';
create index endpoint_health_probing on endpoint_health (next_probe_at) where mode = 'probing';
create index endpoint_health_failing on endpoint_health (failing_since) where failing_since is not null;
create index endpoint_health_notified on endpoint_health (endpoint_id) where failing_notified;
create index endpoint_health_mode_changed on endpoint_health (mode_changed_at);
analyze endpoint_health;
create trigger new_endpoint_health after insert on webhook_endpoints
  for each row execute function keep_endpoint_health();
create trigger carry_endpoint_health after update of
    mode, mode_reason, mode_changed_at, failing_since, recovered_at, next_probe_at,
    probe_failures, failing_notified, has_parked, has_backlog, backlog_due_at, backlog_retried_at
  on webhook_endpoints for each row when ((
    old.mode, old.mode_reason, old.mode_changed_at, old.failing_since, old.recovered_at, old.next_probe_at,
    old.probe_failures, old.failing_notified, old.has_parked, old.has_backlog, old.backlog_due_at, old.backlog_retried_at
  ) is distinct from (
    new.mode, new.mode_reason, new.mode_changed_at, new.failing_since, new.recovered_at, new.next_probe_at,
    new.probe_failures, new.failing_notified, new.has_parked, new.has_backlog, new.backlog_due_at, new.backlog_retried_at
  )) execute function keep_endpoint_health();

-- A statement that notes a change has locked the state, and waits for no settings.
alter table endpoint_changes drop constraint endpoint_changes_endpoint_id_fkey,
  add constraint endpoint_changes_endpoint_id_fkey foreign key (endpoint_id) references endpoint_health on delete cascade;
