import type { Knex } from 'knex';

/** Who changed what (rows that stay as they are), and requests for API keys that an operator decides. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- No foreign keys: an entry outlives what it speaks of.
    create table audit_log (
      id bigint generated always as identity primary key,
      at timestamptz not null default now(),
      tenant_id bigint,
      waba_id text,
      actor text not null,
      action text not null,
      target text not null,
      detail jsonb not null default '{}',
      request_id text,
      ip text
    );
    create index audit_log_tenant on audit_log (tenant_id, id);
    create index audit_log_waba on audit_log (waba_id, id);
    create index audit_log_action on audit_log (action, id);
    create index audit_log_actor on audit_log (actor, id);

    create function refuse_audit_change() returns trigger language plpgsql as $$
    begin
      raise exception 'audit_log is append-only';
    end $$;
    create trigger audit_log_rows_stay before update or delete on audit_log
      for each row execute function refuse_audit_change();
    create trigger audit_log_stays before truncate on audit_log
      for each statement execute function refuse_audit_change();

    create table api_key_requests (
      id bigint generated always as identity primary key,
      tenant_id bigint not null references tenants,
      waba_id text not null references wabas,
      -- The user of the portal who asked: id, and the name that people know.
      requester_id text not null,
      requester text not null,
      purpose text not null,
      scopes text[] not null,
      -- How long the key is to work from the reveal on; null: until it is revoked.
      valid_days integer,
      -- The key that it takes the place of, and how long that one works on after the reveal; null: until revoked.
      replaces_key_id bigint references api_keys,
      overlap_hours integer,
      state text not null default 'requested'
        check (state in ('requested', 'approved', 'denied', 'expired', 'revealed', 'withdrawn')),
      created_at timestamptz not null default now(),
      decide_until timestamptz not null,
      reminders integer not null default 0,
      decided_by text,
      decided_at timestamptz,
      note text,
      reveal_until timestamptz,
      revealed_by text,
      api_key_id bigint references api_keys,
      finished_at timestamptz
    );
    create unique index api_key_requests_open on api_key_requests (waba_id, requester_id)
      where state in ('requested', 'approved');
    create index api_key_requests_waba on api_key_requests (waba_id, id);
    create index api_key_requests_tenant on api_key_requests (tenant_id, id);
    create index api_key_requests_waiting on api_key_requests (id) where state = 'requested';

    -- One line for the Temporal UI, where the kind of workflow does not say enough.
    alter table workflow_tasks add column summary text;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table workflow_tasks drop column summary;
    drop table api_key_requests, audit_log;
    drop function refuse_audit_change();
  `);
}
