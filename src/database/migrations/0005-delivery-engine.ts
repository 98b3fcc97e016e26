import type { Knex } from 'knex';

/** What sessions, endpoint modes, replay, endpoint options and alerts need. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- Null means the installation's setting, or no limit.
    alter table webhook_endpoints
      add column phone_number_ids text[],
      add column custom_headers_sealed text,
      add column retry_schedule_seconds integer[],
      add column timeout_ms integer,
      add column signature_profile text not null default 'standard'
        check (signature_profile in ('standard', 'github', 'stripe')),
      add column max_in_flight integer,
      add column rate_limit_per_second integer,
      -- How long a delivery may hold up others of its key while its endpoint takes deliveries.
      add column block_limit_seconds integer,
      -- A scope asked for; it takes effect once nothing of the present one is open.
      add column wanted_order_scope text check (wanted_order_scope in ('event', 'conversation', 'endpoint')),
      add column mode_changed_at timestamptz not null default now(),
      add column failing_since timestamptz,
      add column next_probe_at timestamptz,
      add column probe_failures integer not null default 0;

    -- Attempts per endpoint and minute: what the breaker looks at, and what charts show.
    create table endpoint_minutes (
      endpoint_id bigint not null,
      minute timestamptz not null,
      successes integer not null default 0,
      failures integer not null default 0,
      total_ms double precision not null default 0,
      primary key (endpoint_id, minute)
    ) with (fillfactor = 70);
    create index endpoint_minutes_minute on endpoint_minutes (minute);

    -- probes: attempts that use up no retry. awaits_workflow: retrying, but its workflow is still to be started.
    -- by_session: claimed by a session, whose rows nobody but the sweep takes over when its lease ends.
    alter table delivery_queue
      add column replay boolean not null default false,
      add column probes integer not null default 0,
      add column first_failed_at timestamptz,
      add column awaits_workflow boolean not null default false,
      add column by_session boolean not null default false;
    create index delivery_queue_due_in_turn on delivery_queue (endpoint_id, replay, position) where state = 'due';
    create index delivery_queue_open_retries on delivery_queue (endpoint_id)
      where state = 'retrying' and not awaits_workflow;
    create index delivery_queue_awaits_workflow on delivery_queue (next_attempt_at) where awaits_workflow;
    drop index delivery_queue_due;

    -- Live worker processes: how many share a rate limit, and whether one of them runs a session.
    create table worker_processes (
      id text primary key,
      session boolean not null,
      seen_at timestamptz not null default now()
    );

    alter table deliveries
      add column replay_id bigint,
      add column replay_of uuid;
    create index deliveries_replay on deliveries (replay_id) where replay_id is not null;

    -- One index for what two did: attempts are looked up by their delivery.
    alter table attempts drop constraint attempts_pkey;
    alter table attempts add primary key (delivery_id, attempt, day);
    drop index attempts_delivery;

    create table replays (
      id bigint generated always as identity primary key,
      waba_id text not null references wabas,
      selection jsonb not null,
      state text not null check (state in ('running', 'paused', 'done', 'cancelled')),
      total bigint not null,
      queued bigint not null default 0,
      -- Where the next page of the selection begins; null at the start.
      cursor text,
      requested_by text not null,
      created_at timestamptz not null default now(),
      finished_at timestamptz
    );
    create index replays_waba on replays (waba_id, id);

    -- Where a tenant wants to hear that an endpoint of its own is in trouble; never a webhook endpoint.
    alter table wabas
      add column operations_url text,
      add column operations_secret_sealed text;
    create table endpoint_alerts (
      id uuid primary key,
      waba_id text not null references wabas,
      endpoint_id bigint not null,
      alert text not null check (alert in ('failing', 'disabled', 'recovered')),
      body bytea not null,
      attempts integer not null default 0,
      last_error text,
      created_at timestamptz not null default now(),
      delivered_at timestamptz,
      given_up_at timestamptz
    );
    create index endpoint_alerts_waba on endpoint_alerts (waba_id, created_at desc);
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table attempts drop constraint attempts_pkey;
    alter table attempts add primary key (day, delivery_id, attempt);
    create index attempts_delivery on attempts (delivery_id, attempt);
    drop table endpoint_alerts, replays, worker_processes, endpoint_minutes;
    alter table wabas drop column operations_url, drop column operations_secret_sealed;
    alter table deliveries drop column replay_id, drop column replay_of;
    create index delivery_queue_due on delivery_queue (endpoint_id, position) where state = 'due';
    drop index delivery_queue_due_in_turn, delivery_queue_open_retries, delivery_queue_awaits_workflow;
    alter table delivery_queue drop column replay, drop column probes, drop column first_failed_at,
      drop column awaits_workflow, drop column by_session;
    alter table webhook_endpoints drop column phone_number_ids, drop column custom_headers_sealed,
      drop column retry_schedule_seconds, drop column timeout_ms, drop column signature_profile,
      drop column max_in_flight, drop column rate_limit_per_second, drop column block_limit_seconds,
      drop column wanted_order_scope, drop column mode_changed_at, drop column failing_since,
      drop column next_probe_at, drop column probe_failures;
  `);
}
