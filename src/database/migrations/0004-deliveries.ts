import type { Knex } from 'knex';

/** Events, their deliveries and attempts, the queue of open deliveries, and workflows that are still to be started. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- id is a version 7 UUID whose time gives the day, so a lookup by id touches one partition.
    -- body stays null until the event is released (an order waits for its catalog lookup).
    create table events (
      day date not null,
      id uuid not null,
      waba_id text not null,
      tenant_id bigint not null,
      phone_number_id text not null,
      event_type text not null,
      event_id text not null,
      lane text not null,
      sequence bigint not null,
      conversation_id bigint,
      message_id bigint,
      body bytea,
      occurred_at timestamptz,
      created_at timestamptz not null default now(),
      primary key (day, id)
    ) partition by range (day);
    create index events_event_id on events (waba_id, event_id);

    create table deliveries (
      day date not null,
      id uuid not null,
      waba_id text not null,
      endpoint_id bigint not null,
      event_day date not null,
      event_uuid uuid not null,
      state text not null default 'pending' check (state in ('pending', 'delivered', 'failed', 'dropped')),
      attempts integer not null default 0,
      workflow_id text,
      last_status_code integer,
      last_error text,
      next_attempt_at timestamptz,
      created_at timestamptz not null default now(),
      finished_at timestamptz,
      primary key (day, id)
    ) partition by range (day);
    create index deliveries_event on deliveries (event_uuid);
    create index deliveries_endpoint on deliveries (waba_id, endpoint_id, created_at desc);

    create table attempts (
      day date not null default (now() at time zone 'utc')::date,
      delivery_id uuid not null,
      attempt integer not null,
      waba_id text not null,
      endpoint_id bigint not null,
      started_at timestamptz not null,
      duration_ms double precision not null,
      timings jsonb not null,
      status_code integer,
      error_class text,
      error_message text,
      url text not null,
      remote_address text,
      request_headers jsonb not null,
      response_headers jsonb,
      response_body bytea,
      worker text not null,
      workflow_id text,
      primary key (day, delivery_id, attempt)
    ) partition by range (day);
    create index attempts_delivery on attempts (delivery_id, attempt);

    -- Open deliveries only. A lane's head is its one row whose state is not 'queued':
    -- queued = behind another; held = head, but its event is not released yet; due = may be claimed;
    -- claimed = leased by an attempt under way; retrying = a deliverEvent workflow is responsible.
    create table delivery_queue (
      position bigint generated always as identity primary key,
      endpoint_id bigint not null,
      lane text not null,
      state text not null check (state in ('queued', 'held', 'due', 'claimed', 'retrying')),
      released boolean not null,
      delivery_day date not null,
      delivery_id uuid not null unique,
      event_day date not null,
      event_uuid uuid not null,
      attempts integer not null default 0,
      token uuid,
      lease_until timestamptz,
      next_attempt_at timestamptz,
      created_at timestamptz not null default now()
    ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
            autovacuum_analyze_scale_factor = 0.05);
    create unique index delivery_queue_one_head on delivery_queue (endpoint_id, lane) where state <> 'queued';
    create index delivery_queue_behind on delivery_queue (endpoint_id, lane, position) where state = 'queued';
    create index delivery_queue_due on delivery_queue (endpoint_id, position) where state = 'due';
    create index delivery_queue_retrying on delivery_queue (next_attempt_at) where state = 'retrying';
    create index delivery_queue_claimed on delivery_queue (lease_until) where state = 'claimed';
    create index delivery_queue_in_flight on delivery_queue (endpoint_id, attempts) where state in ('claimed', 'retrying');
    create index delivery_queue_event on delivery_queue (event_uuid) where not released;

    -- Number of the last event of each ordering key, for X-Service-Sequence.
    create table ordering_keys (
      waba_id text not null,
      key text not null,
      last_sequence bigint not null,
      updated_at timestamptz not null default now(),
      primary key (waba_id, key)
    ) with (fillfactor = 80);

    -- A row here stands until the work of its workflow is done; whatever is overdue is started (again).
    create table workflow_tasks (
      workflow_id text primary key,
      workflow_type text not null,
      waba_id text not null,
      event_id text not null,
      argument jsonb not null,
      starts integer not null default 0,
      next_start_at timestamptz not null default now(),
      created_at timestamptz not null default now()
    );
    create index workflow_tasks_next_start on workflow_tasks (next_start_at);

    create function ensure_partitions(from_day date, to_day date) returns void language plpgsql as $$
    declare
      parent text;
      day date;
    begin
      foreach parent in array array['inbox', 'events', 'deliveries', 'attempts'] loop
        execute format('create table if not exists %I partition of %I default', parent || '_default', parent);
        day := from_day;
        while day <= to_day loop
          execute format('create table if not exists %I partition of %I for values from (%L) to (%L)',
                         parent || '_' || to_char(day, 'YYYYMMDD'), parent, day, day + 1);
          day := day + 1;
        end loop;
      end loop;
    end $$;
    select ensure_partitions((now() at time zone 'utc')::date - 1, (now() at time zone 'utc')::date + 7);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    drop function ensure_partitions(date, date);
    drop table workflow_tasks, ordering_keys, delivery_queue, attempts, deliveries, events;
  `);
}
