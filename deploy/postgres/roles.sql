-- Three roles of least privilege. Run in the database of the service as a superuser, before the first migration and
-- again after each that brought tables; it may be run at any time, also where one role has done everything so far. Then
-- give each role a password.
--   heliograph_owner     owns the schema: migrate
--   heliograph_app       reads and writes rows: api, worker, admin
--   heliograph_readonly  reads the tables that are listed at the end, and no other

do $$
declare
  role text;
begin
  foreach role in array array['heliograph_owner', 'heliograph_app', 'heliograph_readonly'] loop
    if not exists (select from pg_roles where rolname = role) then
      execute format('create role %I login', role);
    end if;
    execute format('grant connect on database %I to %I', current_database(), role);
  end loop;
  execute format('alter database %I owner to heliograph_owner', current_database());
  execute format('revoke connect, temporary on database %I from public', current_database());
end $$;

alter schema public owner to heliograph_owner;
revoke create on schema public from public;
grant usage on schema public to heliograph_app, heliograph_readonly;

-- Where another role made the tables, they go to the owner. That role goes on with the rights of the application, until the
-- processes have changed over.
do $$
declare
  former text;
  command text;
begin
  for former, command in
    select pg_get_userbyid(c.relowner), format('alter table %s owner to heliograph_owner', c.oid::regclass)
      from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
       and c.relowner <> 'heliograph_owner'::regrole
    union all
    select pg_get_userbyid(c.relowner), format('alter sequence %s owner to heliograph_owner', c.oid::regclass)
      from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'S' and c.relowner <> 'heliograph_owner'::regrole
       and not exists (select from pg_depend d where d.objid = c.oid and d.deptype in ('a', 'i'))
    union all
    select pg_get_userbyid(p.proowner), format('alter routine %s owner to heliograph_owner', p.oid::regprocedure)
      from pg_proc p
     where p.pronamespace = 'public'::regnamespace and p.proowner <> 'heliograph_owner'::regrole
       and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
  loop
    execute command;
    if not (select rolsuper from pg_roles where rolname = former) then
      execute format('grant heliograph_app to %I', former);
    end if;
  end loop;
end $$;

grant select, insert, update, delete on all tables in schema public to heliograph_app;
grant usage, select, update on all sequences in schema public to heliograph_app;
grant execute on all functions in schema public to heliograph_app;
alter default privileges for role heliograph_owner in schema public
  grant select, insert, update, delete on tables to heliograph_app;
alter default privileges for role heliograph_owner in schema public
  grant usage, select, update on sequences to heliograph_app;
alter default privileges for role heliograph_owner in schema public
  grant execute on functions to heliograph_app;
-- Early versions of this file let it read every table.
alter default privileges for role heliograph_owner in schema public
  revoke select on tables from heliograph_readonly;
revoke all on all tables in schema public from heliograph_readonly;

-- What they got with the rest.
do $$
declare
  name text;
begin
  foreach name in array array['schema_migrations', 'schema_migrations_lock', 'schema_files'] loop
    if to_regclass(name) is not null then
      execute format('revoke insert, update, delete on %I from heliograph_app', name);
    end if;
  end loop;
  if to_regprocedure('protect_audit_log()') is not null then
    perform protect_audit_log();
  end if;
end $$;

-- What heliograph_readonly reads. A table that is new is not in it. Keys of files are left out, because the address of a file is
-- all that it takes to read it; so are bodies of events, which hold such addresses, URLs of tenants' servers, and secrets.
do $$
declare
  name text;
  columns text;
begin
  for name, columns in
    select unnest(array['tenants', 'tenant_policies', 'tenant_usage', 'inbox', 'waiting_bodies',
      'quarantine_counts', 'contacts', 'conversations', 'messages', 'message_statuses', 'message_states', 'orders',
      'catalog_products', 'payment_reports', 'ordering_keys', 'deliveries', 'attempts', 'endpoint_health', 'endpoint_minutes',
      'endpoint_failures',
      'replays', 'delivery_queue', 'worker_processes', 'system_figures', 'workflow_tasks', 'outbound_messages', 'send_pacing', 'phone_aliases',
      'audit_log', 'audit_chain', 'alerts', 'waba_hours', 'housekeeping_steps', 'schema_files', 'schema_migrations']), ''
    -- All of it but the PINs, in whatever version the schema is.
    union all select 'phone_numbers', '(' || string_agg(quote_ident(attname), ', ') || ')' from pg_attribute
      where attrelid = to_regclass('phone_numbers') and attnum > 0 and not attisdropped and attname <> 'pin_sealed'
    union all values
      ('media', '(message_id, waba_id, state, media_type, mime_type, caption, file_name, served_type, size_bytes, sha256, '
        'error_code, error_message, created_at, finished_at)'),
      ('events', '(day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, conversation_id, '
        'message_id, occurred_at, created_at)'),
      ('wabas', '(waba_id, tenant_id, created_at, removed_at, numbers_asked_at, numbers_problem, token_refused_at, '
        'token_problem)'),
      ('webhook_endpoints', '(id, waba_id, description, event_types, order_scope, created_at, updated_at)'),
      ('erasures', '(id, kind, subject_id, waba_id, tenant_id, state, requested_by, created_at, started_at, finished_at, '
        'counts, refused)')
  loop
    if to_regclass(name) is not null then
      execute format('grant select %s on %I to heliograph_readonly', columns, name);
    end if;
  end loop;
end $$;
