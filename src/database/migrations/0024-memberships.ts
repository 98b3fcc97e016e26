import type { Knex } from 'knex';

/** A user belongs to tenants by membership, and an e-mail address is nobody's alone. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table memberships (
      user_id bigint not null references users on delete cascade,
      tenant_id bigint not null references tenants on delete cascade,
      role text not null check (role in ('admin', 'member')),
      disabled_at timestamptz,
      created_at timestamptz not null default now(),
      -- Of sessions in this tenant: what somebody does elsewhere is not its affair.
      last_sign_in_at timestamptz,
      primary key (user_id, tenant_id)
    );
    create index memberships_tenant on memberships (tenant_id);
    insert into memberships (user_id, tenant_id, role, disabled_at, created_at, last_sign_in_at)
    select id, tenant_id, role, disabled_at, created_at, last_sign_in_at from users where tenant_id is not null;

    alter table users
      add column is_operator boolean not null default false,
      -- Who made the link by which the present password was set, and when it was; null: its holder chose it.
      add column password_link_by text,
      add column password_link_at timestamptz;
    update users set is_operator = role = 'operator', disabled_at = case when role = 'operator' then disabled_at end;

    alter table user_sessions
      -- Where its user is at present; null: at the operator's pages.
      add column tenant_id bigint references tenants on delete cascade,
      -- Begun with a password that was set through another's link.
      add column password_link_by text;
    update user_sessions s set tenant_id = u.tenant_id from users u where u.id = s.user_id;

    alter table users drop constraint users_email_key, drop column tenant_id, drop column role;
    create index users_email on users (email);

    alter table invitations
      add column maker_id bigint references users on delete cascade,
      alter column role drop not null,
      drop constraint invitations_check,
      drop constraint invitations_tenant_id_fkey,
      add constraint invitations_tenant_id_fkey foreign key (tenant_id) references tenants on delete cascade;
    update invitations set role = null where user_id is not null;
    update invitations i set maker_id = u.id from users u where u.email = i.invited_by;
    alter table invitations add constraint invitations_kind check (
      case when user_id is null then role is not null and (role = 'operator') = (tenant_id is null) else role is null end
    );

    -- The salt of an address follows from this: all accounts of an address are tried by one computation.
    create table password_salt (
      salt bytea not null,
      is_only boolean primary key default true check (is_only)
    );
    insert into password_salt (salt)
    select sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

    alter table audit_log
      -- Several accounts may have one address.
      add column actor_user_id bigint,
      -- Where operators work from is not for tenants, also when the operator is gone.
      add column by_operator boolean not null default false;
    alter table audit_log disable trigger audit_log_rows_stay;
    update audit_log a set actor_user_id = u.id, by_operator = u.is_operator from users u where u.email = a.actor;
    alter table audit_log enable trigger audit_log_rows_stay;
  `);
}

/** Of several accounts with one address, and of several memberships of a user, the first stays. */
export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table audit_log drop column actor_user_id, drop column by_operator;
    drop table password_salt;

    alter table users add column tenant_id bigint references tenants, add column role text;
    update users u set role = m.role, tenant_id = m.tenant_id, disabled_at = coalesce(u.disabled_at, m.disabled_at)
      from (select distinct on (user_id) * from memberships order by user_id, tenant_id) m
     where m.user_id = u.id and not u.is_operator;
    update users set role = 'operator' where is_operator;
    delete from users u where role is null or exists (select from users o where o.email = u.email and o.id < u.id);
    drop index users_email;
    alter table users
      drop column is_operator, drop column password_link_by, drop column password_link_at,
      alter column role set not null,
      add constraint users_role_check check (role in ('operator', 'admin', 'member')),
      add constraint users_check check ((role = 'operator') = (tenant_id is null)),
      add constraint users_email_key unique (email);
    create index users_tenant on users (tenant_id);

    alter table invitations drop constraint invitations_kind;
    delete from invitations where user_id is not null and accepted_at is not null;
    update invitations i set role = u.role, tenant_id = u.tenant_id from users u where u.id = i.user_id;
    alter table invitations
      drop column maker_id,
      alter column role set not null,
      add constraint invitations_check check ((role = 'operator') = (tenant_id is null)),
      drop constraint invitations_tenant_id_fkey,
      add constraint invitations_tenant_id_fkey foreign key (tenant_id) references tenants;
    alter table user_sessions drop column tenant_id, drop column password_link_by;
    drop table memberships;
  `);
}
