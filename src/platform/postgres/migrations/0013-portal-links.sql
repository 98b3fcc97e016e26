-- Links by which people of the operator's product open the portal.
-- An earlier release finds no membership for their sessions, so to it they are none.

create table portal_links (
  id bigint generated always as identity primary key,
  -- SHA-256 of what is in the link.
  token_hash bytea not null unique,
  tenant_id bigint not null references tenants on delete cascade,
  user_id bigint not null references users on delete cascade,
  -- Null: an operator's command made it.
  platform_key_id bigint references platform_keys,
  role text not null check (role in ('admin', 'member')),
  capabilities text[] not null,
  -- The person gave a second factor to the product.
  has_second_factor boolean not null,
  page text not null,
  return_url text,
  refresh_url text,
  session_seconds integer not null,
  created_at timestamptz not null default now(),
  link_expires_at timestamptz not null,
  used_at timestamptz,
  -- When the link and its session were ended from outside, or by signing out.
  ended_at timestamptz
);
create index portal_links_tenant on portal_links (tenant_id);
create index portal_links_user on portal_links (user_id);
create index portal_links_expiry on portal_links (link_expires_at);

alter table user_sessions
  add portal_link_id bigint references portal_links on delete cascade,
  drop constraint user_sessions_begun_by_check,
  add constraint user_sessions_begun_by_check
    check (begun_by in ('password', 'oidc', 'invitation', 'set-up link', 'platform'));
create index user_sessions_portal_link on user_sessions (portal_link_id) where portal_link_id is not null;
