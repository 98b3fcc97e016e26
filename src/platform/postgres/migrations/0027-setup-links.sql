-- Links by which customers of the operator connect a number. No statement rewrites a table.

create table setup_links (
  id bigint generated always as identity primary key,
  -- SHA-256 of what is in the link.
  token_hash bytea not null unique,
  tenant_id bigint not null references tenants on delete cascade,
  mode text not null check (mode in ('signup', 'steps')),
  connections text[] not null check (connections <> '{}'),
  -- The number that is to be connected again; null: any.
  reconnect_phone_number_id text,
  success_url text not null,
  failure_url text not null,
  -- What the operator's program gets back with the customer.
  client_state text,
  state text not null default 'open' check (state in
    ('open', 'started', 'authorized', 'subscribed', 'registered', 'done', 'failed', 'cancelled', 'expired', 'revoked')),
  -- Where a failed link resumes: the state before it failed.
  resumes text,
  -- step, code, retryable, message, upstreamCode, retryAt
  failure jsonb,
  -- SHA-256 of what the browser that began has in its cookie.
  nonce_hash bytea,
  -- What upstream gave for the customer's consent, encrypted; null as soon as the WABA has it.
  token_sealed text,
  authorized_at timestamptz,
  -- What the customer may choose from, as id and label: WABAs or numbers.
  choice jsonb,
  waba_id text,
  phone_number_id text,
  -- How often the step was tried in vain, and how many PINs of the customer upstream refused.
  tries integer not null default 0,
  pin_tries integer not null default 0,
  attention text[] not null default '{}',
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  changed_at timestamptz not null default now()
);
create index setup_links_tenant on setup_links (tenant_id, id);
create index setup_links_expiry on setup_links (expires_at);

-- The PIN with which we registered the number, encrypted.
alter table phone_numbers add pin_sealed text;
