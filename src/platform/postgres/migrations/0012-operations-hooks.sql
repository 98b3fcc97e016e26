-- Where operation events go. No statement touches another table.

create table operations_hooks (
  -- What the operator's program calls it.
  ref text primary key,
  url text not null,
  -- Types of events, such as tenant.* or *.
  types text[] not null check (types <> '{}'),
  description text not null,
  secret_sealed text not null,
  -- Signs beside the other one until then.
  previous_secret_sealed text,
  previous_ends_at timestamptz,
  -- Place in the chain of the audit log: everything up to it was delivered.
  position bigint not null,
  disabled_at timestamptz,
  -- Null: a program disabled it.
  disabled_reason text,
  -- A test event waits to be sent, whose id this is.
  test_id uuid,
  -- The next attempt; while one is under way, the end of its lease.
  due_at timestamptz not null default now(),
  lease uuid,
  failures integer not null default 0,
  failing_since timestamptz,
  last_error text,
  last_error_at timestamptz,
  last_success_at timestamptz,
  created_at timestamptz not null default now()
);
