-- What the operator's program makes, under the names that it has for it; and the suspension of tenants. No statement rewrites a table.

-- Keys of the operator's own program, for /api/platform. They read no message, event or file.
create table platform_keys (
  id bigint generated always as identity primary key,
  name text not null,
  key_hash bytea not null unique,
  prefix text not null,
  last_four text not null,
  scopes text[] not null check (scopes <> '{}'),
  -- Which scopes it may give to API keys of tenants.
  grantable_scopes text[] not null default '{}',
  -- Networks that it may be used from; null: anywhere.
  allowed_networks text[],
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);

alter table tenants
  -- What the operator's program calls it; null: no program has named it.
  add external_id text,
  -- What that program keeps with it. Tenants do not see it.
  add metadata jsonb not null default '{}',
  -- Since when nothing is sent and changed for it; null: it is not suspended.
  add suspended_at timestamptz,
  add suspend_reason text,
  add updated_at timestamptz not null default now();
create unique index tenants_external_id on tenants (external_id) where external_id is not null;

-- What the operator's program calls the key, or the endpoint.
alter table api_keys add ref text;
alter table webhook_endpoints add ref text;
create unique index api_keys_ref on api_keys (waba_id, ref) where ref is not null;
create unique index webhook_endpoints_ref on webhook_endpoints (waba_id, ref) where ref is not null;
