import type { Knex } from 'knex';

/** Who may use the portal: users, their sessions, invitations, and identities at an OpenID provider. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table users (
      id bigint generated always as identity primary key,
      email text not null unique check (email = lower(email)),
      name text not null,
      role text not null check (role in ('operator', 'admin', 'member')),
      tenant_id bigint references tenants,
      -- PHC string; null: signs in through the OpenID provider only.
      password_hash text,
      disabled_at timestamptz,
      created_at timestamptz not null default now(),
      last_sign_in_at timestamptz,
      check ((role = 'operator') = (tenant_id is null))
    );
    create index users_tenant on users (tenant_id);

    create table user_sessions (
      -- SHA-256 of the cookie.
      token_hash bytea primary key,
      id bigint generated always as identity unique,
      user_id bigint not null references users on delete cascade,
      csrf_token text not null,
      created_at timestamptz not null default now(),
      last_seen_at timestamptz not null default now(),
      -- Whichever comes first; the first is moved on by use.
      idle_until timestamptz not null,
      expires_at timestamptz not null,
      ip text,
      user_agent text
    ) with (fillfactor = 80);
    create index user_sessions_user on user_sessions (user_id);
    create index user_sessions_end on user_sessions (least(idle_until, expires_at));

    create table invitations (
      -- SHA-256 of the token in the link.
      token_hash bytea primary key,
      id bigint generated always as identity unique,
      email text not null check (email = lower(email)),
      role text not null check (role in ('operator', 'admin', 'member')),
      tenant_id bigint references tenants,
      -- Set: the link gives this user a new password and makes nobody.
      user_id bigint references users on delete cascade,
      invited_by text not null,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      accepted_at timestamptz,
      check ((role = 'operator') = (tenant_id is null))
    );
    create index invitations_email on invitations (email);
    create index invitations_tenant on invitations (tenant_id);
    create index invitations_end on invitations (expires_at);

    create table user_identities (
      issuer text not null,
      subject text not null,
      user_id bigint not null references users on delete cascade,
      created_at timestamptz not null default now(),
      primary key (issuer, subject),
      -- One person at the provider per user: a recycled e-mail address opens nothing.
      unique (user_id, issuer)
    );
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop table user_identities, invitations, user_sessions, users');
}
