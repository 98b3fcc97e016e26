-- What endpoints did by themselves, until tenants are notified of it: it is recorded by the transaction that changes them.

create table endpoint_changes (
  endpoint_id bigint not null references webhook_endpoints on delete cascade,
  id bigint generated always as identity,
  change text not null check (change in ('failing', 'disabled', 'recovered')),
  -- As the change left the endpoint.
  mode text not null,
  mode_reason text,
  reason text not null,
  changed_at timestamptz not null default now(),
  primary key (endpoint_id, id)
) with (vacuum_truncate = off);
