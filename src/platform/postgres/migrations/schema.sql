-- The tables of Heliograph, as they are. The functions are in functions.sql, which is applied before this file.
-- How both may change: CONTRIBUTING.md, docs/decisions/0046. What the tables are for: docs/architecture.md.
--
-- What is a tenant's is asked for by its owner (tenant, WABA, number or endpoint), with which its indexes begin.

-- ---------------------------------------------------------------------------------------------------------------------
-- Accounts: tenants, their WABAs and numbers, API keys, webhook endpoints
-- ---------------------------------------------------------------------------------------------------------------------

create table tenants (
  id bigint generated always as identity primary key,
  business_name text not null,
  created_at timestamptz not null default now(),
  -- Orders are numbered per tenant: a number over all would tell each of them how many the others have.
  last_order_number bigint not null default 0,
  removed_at timestamptz
);

-- What holds for a tenant in place of the installation's settings; null, or no row: the installation's.
create table tenant_policies (
  tenant_id bigint primary key references tenants on delete cascade,
  -- For how long an address of a received file is good; 0: for ever.
  media_url_ttl_seconds integer,
  -- For how many days things are kept.
  message_days integer,
  media_days integer,
  event_days integer,
  audit_days integer,
  -- Quotas, which operators set.
  stored_bytes_quota bigint,
  upload_files_per_day bigint,
  upload_bytes_per_day bigint
);

-- What a tenant stores. Triggers of media and media_uploads count it, so that no deletion has to.
create table tenant_usage (
  tenant_id bigint primary key references tenants on delete cascade,
  stored_bytes bigint not null default 0,
  stored_files bigint not null default 0,
  -- The UTC day of the last upload, and what came on it.
  upload_day date,
  uploaded_bytes bigint not null default 0,
  uploaded_files bigint not null default 0
);

create table wabas (
  waba_id text primary key,
  tenant_id bigint not null references tenants,
  access_token_sealed text,
  created_at timestamptz not null default now(),
  -- Where the tenant wants notices that one of its endpoints is in trouble; never a webhook endpoint.
  operations_url text,
  operations_secret_sealed text,
  -- When it was last set, and by which API key; null: by a user.
  operations_url_set_at timestamptz,
  operations_url_set_by_key bigint,
  removed_at timestamptz,
  -- Where its webhooks and alerts may go, and where not: names, networks, ports. What is denied wins; nothing allowed: anywhere.
  webhook_allow text[] not null default '{}',
  webhook_deny text[] not null default '{}',
  -- When upstream was last asked for the numbers, and what came in the way; null: nothing.
  numbers_asked_at timestamptz,
  numbers_problem text,
  -- Since when upstream refuses the access token, and its words; null: it does not.
  token_refused_at timestamptz,
  token_problem text
);
create index wabas_tenant on wabas (tenant_id);
create index wabas_token_refused on wabas (waba_id) where token_refused_at is not null;

create table phone_numbers (
  phone_number_id text primary key,
  waba_id text not null references wabas,
  display_phone_number text not null,
  verified_name text not null,
  quality_rating text,
  created_at timestamptz not null default now(),
  -- Its own pace; null means the installation's setting.
  messages_per_second integer check (messages_per_second between 1 and 1000),
  removed_at timestamptz,
  -- An operator took it away, so that upstream's list does not bring it back.
  detached boolean not null default false
);
create index phone_numbers_waba on phone_numbers (waba_id, phone_number_id);

create table api_keys (
  id bigint generated always as identity primary key,
  waba_id text not null references wabas,
  name text not null,
  key_hash bytea not null unique,
  prefix text not null,
  last_four text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  scopes text[] not null default '{read}'
    check (scopes <> '{}' and scopes <@ '{read,read_events,send,manage_webhooks,export,erase,graph}'),
  -- Networks that it may be used from; null: anywhere.
  allowed_networks text[]
);
create index api_keys_waba on api_keys (waba_id, id);

-- Requests for API keys that an operator decides.
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
  -- Networks that the key may be used from; null: anywhere.
  allowed_networks text[],
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

-- The id is drawn before the row is written, because it is part of what the sealed secret is bound to.
create table webhook_endpoints (
  id bigint generated by default as identity primary key,
  waba_id text not null references wabas,
  url text not null,
  -- Since when events go there, and which API key set it; null: a user.
  url_set_at timestamptz not null default now(),
  url_set_by_key bigint,
  description text not null default '',
  event_types text[],
  mode text not null default 'open' check (mode in ('open', 'probing', 'paused', 'disabled')),
  mode_reason text,
  version integer not null default 1,
  order_scope text not null default 'event' check (order_scope in ('event', 'conversation', 'endpoint')),
  secret_sealed text not null,
  previous_secret_sealed text,
  previous_secret_expires_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- Of what follows, null means the installation's setting, or no limit.
  phone_number_ids text[],
  -- Conditions on `data` that must all hold; null: every event.
  filter text[],
  custom_headers_sealed text,
  retry_schedule_seconds integer[],
  timeout_ms integer,
  signature_profile text not null default 'standard' check (signature_profile in ('standard', 'github', 'stripe')),
  -- Beside the secret; the private key is made when this is first chosen.
  asymmetric_signature text not null default 'none' check (asymmetric_signature in ('none', 'ed25519')),
  signing_key_sealed text,
  previous_signing_key_sealed text,
  previous_signing_key_expires_at timestamptz,
  -- `meta`: bodies in the envelope of the upstream platform, signed with the app secret too.
  format text not null default 'heliograph' check (format in ('heliograph', 'meta')),
  app_secret_sealed text,
  -- What the sender shows to a server that asks for a certificate: a chain in PEM, and the private key of its first one.
  client_certificate text,
  client_key_sealed text,
  client_certificate_expires_at timestamptz,
  max_in_flight integer,
  rate_limit_per_second integer,
  -- How long a delivery may hold up others of its key while its endpoint takes deliveries.
  block_limit_seconds integer,
  -- Which of its deliveries get a run of deliverEvent.
  delivery_workflows text check (delivery_workflows in ('auto', 'always', 'failures')),
  -- How many of its deliveries that failed may have a run that counts towards the limits.
  max_retry_workflows integer,
  -- A scope asked for; it takes effect once no event can overtake another by it (apply_order_scope).
  wanted_order_scope text check (wanted_order_scope in ('event', 'conversation', 'endpoint')),
  mode_changed_at timestamptz not null default now(),
  failing_since timestamptz,
  -- When failing_since last ended with a success.
  recovered_at timestamptz,
  next_probe_at timestamptz,
  probe_failures integer not null default 0,
  -- Whether the tenant was notified that it fails or was disabled for that, and when it last got a report of final failures.
  failing_notified boolean not null default false,
  failures_notified_at timestamptz,
  -- Whether some of its deliveries are parked in the queue.
  has_parked boolean not null default false,
  -- Whether deliveries may wait for retries because it was in trouble, when those are brought forward (null: it has not
  -- accepted a delivery since), and when some last were (docs/decisions/0022).
  has_backlog boolean not null default false,
  backlog_due_at timestamptz,
  backlog_retried_at timestamptz
);
create index webhook_endpoints_in_trouble on webhook_endpoints (id) where has_backlog and backlog_due_at is null;
create index webhook_endpoints_backlog_due on webhook_endpoints (backlog_due_at) where backlog_due_at is not null;
create index webhook_endpoints_to_unpark on webhook_endpoints (id) where has_parked and mode = 'open';
create index webhook_endpoints_waba on webhook_endpoints (waba_id, id);
-- What is asked once a second about endpoints reads only those that it is about.
create index webhook_endpoints_updated on webhook_endpoints (updated_at);
create index webhook_endpoints_probing on webhook_endpoints (next_probe_at) where mode = 'probing';
create index webhook_endpoints_certificate on webhook_endpoints (client_certificate_expires_at)
  where client_certificate_expires_at is not null;
create index webhook_endpoints_failing on webhook_endpoints (failing_since) where failing_since is not null;
create index webhook_endpoints_notified on webhook_endpoints (id) where failing_notified;
create index webhook_endpoints_set_by_key on webhook_endpoints (url_set_at) where url_set_by_key is not null;
create index webhook_endpoints_wanted_scope on webhook_endpoints (id) where wanted_order_scope is not null;

create sequence test_event_number;

-- ---------------------------------------------------------------------------------------------------------------------
-- Inbox: raw upstream bodies, and what makes each upstream item count once
-- ---------------------------------------------------------------------------------------------------------------------

-- state: new = not yet ingested; waiting = upstream is asked for a phone number of it (waiting_bodies says which);
-- done; quarantined = ingested, but some items emitted nothing (notes say why); failed = could not be ingested, kept for
-- "admin inbox retry".
create table inbox (
  received_day date not null default (now() at time zone 'utc')::date,
  id bigint generated always as identity,
  body bytea not null,
  state text not null default 'new' check (state in ('new', 'done', 'quarantined', 'failed', 'waiting')),
  notes jsonb,
  received_at timestamptz not null default now(),
  processed_at timestamptz,
  -- Of all entries of the body; 0 when it cannot be read or does not say.
  waba_id text not null default '0',
  -- The part of intake that it is in: the CRC-32 of the WABA, of which the remainder by 16 (src/engine/inbox/shards.ts).
  shard smallint not null default 1,
  -- The WABAs for which the app secret that signed the body may speak; null: all. Its items go to no other.
  signed_for text[],
  -- How far it is ingested and what was quarantined until there, while the rest still waits.
  partly jsonb,
  primary key (received_day, id)
) partition by range (received_day);
create index inbox_new on inbox (shard, id) where state = 'new';
create index inbox_new_of_waba on inbox (shard, waba_id, id) where state = 'new';
create index inbox_not_done on inbox (state, id) where state in ('quarantined', 'failed');

-- Vacuumed when a share of a few bodies is dead: each is ingested once and then only in the way of those that look for
-- new ones. The partitions of days have the storage settings of the default one.
create table inbox_default partition of inbox default
  with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- A row per phone number that a body waits for.
create table waiting_bodies (
  waba_id text not null references wabas,
  phone_number_id text not null,
  received_day date not null,
  inbox_id bigint not null,
  -- Upstream does not list the number; the body is ingested all the same should that change.
  refused boolean not null default false,
  waiting_since timestamptz not null default now(),
  primary key (waba_id, phone_number_id, received_day, inbox_id)
);
create index waiting_bodies_day on waiting_bodies (received_day);

-- A SHA-256 of the upstream item's identity. Rows outlive every upstream redelivery (7 days) and more.
create table dedup_keys (
  key bytea primary key,
  first_seen_at timestamptz not null default now()
);
-- Rows are deleted from the old end and their room is used again: a summary of blocks would soon match all of them.
create index dedup_keys_age on dedup_keys (first_seen_at);

-- What emitted no event, counted.
create table quarantine_counts (
  day date not null,
  reason text not null,
  field text not null,
  waba_id text not null,
  count bigint not null,
  primary key (day, reason, field, waba_id)
);

-- What intake remembers from one batch to the next (whose a number is, where the bodies that wait begin) is of an epoch.
-- A change of that begins a new one under the intake lock of the shard.
create table intake_epochs (
  shard smallint primary key,
  epoch bigint not null default 1
);
insert into intake_epochs (shard) select generate_series(0, 15);

-- ---------------------------------------------------------------------------------------------------------------------
-- Conversations: customers, messages with their statuses, media and orders
-- ---------------------------------------------------------------------------------------------------------------------

create table contacts (
  id bigint generated by default as identity primary key,
  waba_id text not null references wabas,
  user_id text,
  parent_user_id text,
  wa_id text,
  profile_name text,
  username text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index contacts_user_id on contacts (waba_id, user_id) where user_id is not null;
create unique index contacts_wa_id on contacts (waba_id, wa_id) where wa_id is not null;
-- What tenants keep no longer. A contact changes seldom.
create index contacts_age on contacts (waba_id, updated_at, id);

create table conversations (
  id bigint generated by default as identity primary key,
  waba_id text not null references wabas,
  phone_number_id text not null references phone_numbers,
  contact_id bigint references contacts,
  -- One that turned out to be another one's double points to it, so that its id stays usable.
  merged_into bigint references conversations,
  created_at timestamptz not null default now(),
  last_message_at timestamptz not null default now(),
  group_id text,
  -- When the customer last called, or accepted a call: it opens the customer service window, as a message does.
  last_call_at timestamptz,
  -- With one customer or with a group.
  constraint conversations_with_whom check (num_nonnulls(contact_id, group_id) = 1)
);
create unique index conversations_customer on conversations (phone_number_id, contact_id) where merged_into is null;
create unique index conversations_group on conversations (phone_number_id, group_id) where group_id is not null;
create index conversations_contact on conversations (contact_id);
create index conversations_merged on conversations (merged_into) where merged_into is not null;
create index conversations_activity on conversations (waba_id, last_message_at desc, id desc)
  where merged_into is null;
create index conversations_activity_of_number on conversations (phone_number_id, last_message_at desc, id desc)
  where merged_into is null;

-- What upstream reported of groups of WhatsApp, by the time of each report: reports overtake each other.
create table group_details (
  conversation_id bigint primary key references conversations on delete cascade,
  waba_id text not null references wabas,
  subject text,
  subject_at timestamptz,
  description text,
  description_at timestamptz,
  -- Null: upstream said nothing of it.
  state text check (state in ('active', 'suspended', 'deleted')),
  state_at timestamptz
);
create index group_details_waba on group_details (waba_id);

-- Who is in a group or asks to be. Who left is kept for a while, so that an older report does not bring him back.
create table group_members (
  conversation_id bigint not null references conversations on delete cascade,
  contact_id bigint not null references contacts on delete cascade,
  waba_id text not null references wabas,
  state text not null check (state in ('member', 'requested', 'left')),
  at timestamptz not null,
  primary key (conversation_id, contact_id)
);
create index group_members_contact on group_members (contact_id);
create index group_members_waba on group_members (waba_id);
create index group_members_left on group_members (at) where state = 'left';

-- No foreign keys: its number, WABA and conversation are looked up in the transaction that stores it, and none of them
-- is ever deleted; checking that three times per message costs about a sixth of its way through the database.
create table messages (
  id bigint generated by default as identity primary key,
  waba_id text not null,
  phone_number_id text not null,
  conversation_id bigint not null,
  direction text not null check (direction in ('inbound', 'outbound')),
  -- Null: outbound, and upstream has not accepted it yet.
  upstream_id text,
  type text not null,
  placeholder boolean not null default false,
  content text not null,
  context_id text,
  target_id text,
  sent_at timestamptz,
  created_at timestamptz not null default now(),
  -- When the tenant marked an inbound message as read.
  read_at timestamptz,
  -- The upstream id of a placeholder, once another message has it. The placeholder stays where it was listed.
  superseded_upstream_id text,
  -- Who of the group wrote it: the user id, else the phone.
  group_sender text,
  -- Null: it came or was sent through the platform. business_app: the business wrote it in the WhatsApp Business app.
  -- history: from before the number came to the platform, in either direction.
  origin text check (origin in ('business_app', 'history'))
);
create unique index messages_upstream on messages (phone_number_id, upstream_id);
-- A walk by id; filters and times are judged in the index, so that what they pass over is cheap.
create index messages_conversation on messages (conversation_id, id) include (created_at, direction, type);
-- What tenants keep no longer.
create index messages_age on messages (waba_id, created_at, id);
-- Reactions, edits and deletions by the message they are about; other messages are not in it.
create index messages_target on messages (phone_number_id, target_id, direction, type, id)
  where target_id is not null;

-- What customers wrote last in what came as history, whatever came first.
create index messages_history on messages (conversation_id, sent_at)
  where origin = 'history' and direction = 'inbound';

-- Messages of a thread from before the number came to the platform, until they are put into their conversation.
create table history_pieces (
  id bigint generated by default as identity primary key,
  waba_id text not null references wabas on delete cascade,
  phone_number_id text not null,
  wa_id text not null,
  -- The digits of the number, from which its own messages are.
  business_phone text,
  phase integer not null,
  chunk integer not null,
  -- A JSON array.
  messages text not null,
  received_at timestamptz not null default now()
);
create index history_pieces_order on history_pieces (phone_number_id, phase, chunk, id);
create index history_pieces_customer on history_pieces (waba_id, wa_id);

-- Every status that upstream reported, and the state that follows from them. Both are keyed by the upstream id alone, so
-- a status that comes before its message (or without one) is kept and joined when read.
create table message_statuses (
  phone_number_id text not null,
  upstream_id text not null,
  status text not null,
  participant text not null,
  at timestamptz,
  content text not null,
  received_at timestamptz not null default now(),
  primary key (phone_number_id, upstream_id, status, participant)
);
create table message_states (
  phone_number_id text not null,
  upstream_id text not null,
  status text not null,
  status_at timestamptz,
  primary key (phone_number_id, upstream_id)
);

-- Files of inbound messages. One that upstream never had has no upstream id.
create table media (
  message_id bigint primary key references messages,
  waba_id text not null references wabas,
  state text not null default 'pending' check (state in ('pending', 'stored', 'failed', 'expired')),
  upstream_media_id text,
  media_type text not null,
  mime_type text,
  expected_sha256 text,
  upstream_url text,
  caption text,
  file_name text,
  object_key text unique,
  served_type text,
  size_bytes bigint,
  sha256 text,
  error_code text,
  error_message text,
  created_at timestamptz not null default now(),
  finished_at timestamptz
);

-- What the Cloud API facade is asked for.
create index media_upstream on media (waba_id, upstream_media_id) where upstream_media_id is not null;
-- What tenants keep no longer.
create index media_age on media (waba_id, finished_at) where state = 'stored';
-- Files are never inserted as stored: rows come before bytes.
create trigger media_counts_updates after update on media referencing old table as old_files new table as new_files
  for each statement execute function count_stored_files();
create trigger media_counts_deletes after delete on media referencing old table as old_files
  for each statement execute function count_stored_files();

create table orders (
  id bigint generated by default as identity primary key,
  waba_id text not null references wabas,
  message_id bigint not null unique references messages,
  phone_number_id text not null,
  catalog_id text,
  cart text not null,
  event_day date not null,
  event_uuid uuid not null,
  service text,
  created_at timestamptz not null default now(),
  -- Within its tenant, from 1.
  number bigint not null
);
create index orders_number on orders (number);

create table catalog_products (
  waba_id text not null references wabas,
  catalog_id text not null,
  retailer_id text not null,
  name text,
  image_url text,
  fetched_at timestamptz not null default now(),
  primary key (waba_id, catalog_id, retailer_id)
);

-- What was reported of payments, for longer than events are kept.
create table payment_reports (
  event_uuid uuid primary key,
  waba_id text not null references wabas,
  phone_number_id text not null,
  -- Of the payment's events: its reference id.
  lane text not null,
  event_id text not null,
  -- The event's data as it is in its body.
  data text not null,
  created_at timestamptz not null default now()
);
create index payment_reports_payment on payment_reports (waba_id, lane, event_uuid);

-- ---------------------------------------------------------------------------------------------------------------------
-- Events and their deliveries: the log
-- ---------------------------------------------------------------------------------------------------------------------

-- id is a version 7 UUID whose time gives the day, so a look-up by id touches one partition.
create table events (
  day date not null,
  id uuid not null,
  waba_id text not null,
  tenant_id bigint not null,
  -- Null: it is about the WABA.
  phone_number_id text,
  event_type text not null,
  event_id text not null,
  lane text not null,
  sequence bigint not null,
  conversation_id bigint,
  message_id bigint,
  -- Null until the event is released (an order waits for its catalog look-up).
  body bytea,
  occurred_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (day, id)
) partition by range (day);
create index events_event_id on events (waba_id, event_id);
-- Ids sort by time, so this is the order of the list.
create index events_of_waba on events (waba_id, id);
-- Few at any time: a list in order waits for them.
create index events_not_released on events (waba_id, id) where body is null;
create table events_default partition of events default;

-- Number of the last event of each ordering key, for X-Service-Sequence.
create table ordering_keys (
  waba_id text not null,
  key text not null,
  last_sequence bigint not null,
  -- The first day of the month of its last event. It changes once a month at most, so nearly every update stays in its page.
  used_month date not null default date_trunc('month', now() at time zone 'utc'),
  primary key (waba_id, key)
) with (fillfactor = 80);
create index ordering_keys_month on ordering_keys (used_month);

-- After a restore to an earlier moment, for as long as tenants may see keys that are forgotten: new keys begin behind it.
create table ordering_key_floor (
  only_row boolean primary key default true check (only_row),
  last_sequence bigint not null,
  ends_at timestamptz not null
);

-- No index for what pages of the portal look for: each would be written for every event.
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
  replay_id bigint,
  replay_of uuid,
  stepped_aside_at timestamptz,
  primary key (day, id)
) partition by range (day);
create index deliveries_event on deliveries (event_uuid);
create index deliveries_endpoint on deliveries (waba_id, endpoint_id, created_at desc);
create index deliveries_replay on deliveries (replay_id) where replay_id is not null;
-- A row is written once and changed once, which costs no index entries where the page has room for its second version.
create table deliveries_default partition of deliveries default with (fillfactor = 55);

create table attempts (
  day date not null default (now() at time zone 'utc')::date,
  delivery_id uuid not null,
  attempt integer not null,
  waba_id text not null,
  endpoint_id bigint not null,
  started_at timestamptz not null,
  duration_ms double precision not null,
  -- Those of a connection that was made for it.
  dns_ms real,
  connect_ms real,
  tls_ms real,
  first_byte_ms real,
  reused boolean not null,
  status_code integer,
  error_class text,
  error_message text,
  url text not null,
  remote_address text,
  user_agent text not null,
  -- Names that the tenant added, with commas between them. The other headers follow from the delivery.
  custom_headers text,
  response_headers jsonb,
  response_body bytea,
  worker text not null,
  -- Attempts are looked up by their delivery, hence not the day first.
  primary key (delivery_id, attempt, day)
) partition by range (day);
-- Those that failed are few, are never changed, and lead to the deliveries that users look for.
create index attempts_failed on attempts (waba_id, delivery_id) where (status_code between 200 and 299) is not true;
create table attempts_default partition of attempts default;
-- Mostly empty; its days are asked for all the same.
create index attempts_default_day on attempts_default (day);

-- Attempts per endpoint and minute, after two days per endpoint and hour: what the breaker looks at, and what charts show.
create table endpoint_minutes (
  endpoint_id bigint not null,
  minute timestamptz not null,
  successes integer not null default 0,
  failures integer not null default 0,
  -- The failures that the breaker counts: one of each delivery within some minutes.
  failed_deliveries integer not null default 0,
  total_ms double precision not null default 0,
  -- Of all minutes of the hour that begins with this one.
  is_hour boolean not null default false,
  primary key (endpoint_id, minute)
) with (fillfactor = 70);
create index endpoint_minutes_age on endpoint_minutes (is_hour, minute);

-- What failed for good, by hour, so that a bounded number of alerts reports it.
create table endpoint_failures (
  endpoint_id bigint not null,
  hour timestamptz not null,
  failed integer not null,
  told integer not null default 0,
  primary key (endpoint_id, hour)
);
create index endpoint_failures_hour on endpoint_failures (hour);
create index endpoint_failures_untold on endpoint_failures (endpoint_id) where told < failed;

-- What is sent to operations URLs, with its bytes. One about an endpoint says so.
create table alert_notices (
  id uuid primary key,
  waba_id text not null references wabas,
  endpoint_id bigint,
  alert text not null,
  body bytea not null,
  attempts integer not null default 0,
  last_error text,
  created_at timestamptz not null default now(),
  delivered_at timestamptz,
  given_up_at timestamptz
);
create index alert_notices_waba on alert_notices (waba_id, created_at desc);

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

-- ---------------------------------------------------------------------------------------------------------------------
-- The queue of open deliveries, and the workflows that are still to be started
-- ---------------------------------------------------------------------------------------------------------------------

-- A lane's head is its one row whose state is not 'queued':
-- queued = behind another; unreleased = its event has no body yet; suspended = its replay is paused; due = may be claimed;
-- claimed = leased by an attempt under way; retrying = waits for the time of its next attempt.
-- All moves between them are in src/engine/queue (states.ts) and in the functions that it calls.
create table delivery_queue (
  position bigint generated always as identity primary key,
  endpoint_id bigint not null,
  lane text not null,
  state text not null check (state in ('queued', 'unreleased', 'suspended', 'due', 'claimed', 'retrying')),
  -- Whether it may be sent once it is a head: its event has its body, and its replay is not paused.
  released boolean not null,
  delivery_day date not null,
  delivery_id uuid not null unique,
  event_day date not null,
  event_uuid uuid not null,
  attempts integer not null default 0,
  token uuid,
  lease_until timestamptz,
  next_attempt_at timestamptz,
  created_at timestamptz not null default now(),
  replay boolean not null default false,
  -- Attempts that use up no retry.
  probes integer not null default 0,
  first_failed_at timestamptz,
  -- While it is retried and others of its lane wait behind it: the kind of event that blocks them. Set when an attempt
  -- failed, and when the first of them is queued after that.
  blocks text check (blocks in ('order', 'other')),
  -- Whether a run of its workflow shows it: null = none; room = one that counts towards the limits of runs; extra = one beside
  -- them. It owns nothing: when the run does not come for an attempt in time, a delivery loop makes it.
  run text check (run in ('room', 'extra')),
  -- It blocked its lane for too long and has its own lane since then (docs/decisions/0006).
  stepped_aside_at timestamptz,
  -- Its endpoint stays paused, disabled or probed: walks for something to claim pass over it. Never true for long at an endpoint that
  -- takes deliveries, because webhook_endpoints.has_parked names those with such rows.
  parked boolean not null default false,
  -- When it is due after a retry that was brought forward: if that fails too, it waits until then, as if nothing had been.
  scheduled_at timestamptz
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_analyze_scale_factor = 0.05);
create unique index delivery_queue_one_head on delivery_queue (endpoint_id, lane) where state <> 'queued';
create index delivery_queue_behind on delivery_queue (endpoint_id, lane, position) where state = 'queued';
create index delivery_queue_due_in_turn on delivery_queue (endpoint_id, replay, position) where state = 'due';
create index delivery_queue_to_walk on delivery_queue (endpoint_id, replay, position) where state = 'due' and not parked;
create index delivery_queue_parked on delivery_queue (endpoint_id) where parked;
create index delivery_queue_claimed on delivery_queue (lease_until) where state = 'claimed';
create index delivery_queue_in_flight on delivery_queue (endpoint_id) where state in ('claimed', 'retrying');
create index delivery_queue_run_room on delivery_queue (endpoint_id) where run = 'room';
create index delivery_queue_retries on delivery_queue (next_attempt_at) where state = 'retrying';
create index delivery_queue_blocking on delivery_queue (endpoint_id, blocks, first_failed_at)
  where state = 'retrying' and blocks is not null and stepped_aside_at is null;
create index delivery_queue_event on delivery_queue (event_uuid) where not released;

-- Live worker processes: how many share a rate limit.
create table worker_processes (
  id text primary key,
  -- Attempts that it made in the last 15 minutes, and those of them that a run of their delivery shows.
  recent_attempts bigint not null default 0,
  recent_with_run bigint not null default 0,
  -- Why it cannot send webhooks through the egress proxy; null: it can, or there is none.
  proxy_trouble text,
  seen_at timestamptz not null default now()
);

-- What one worker read lately for metrics, for the scrapes of all workers: to read it costs a step per endpoint.
create table system_figures (
  only_row boolean primary key default true check (only_row),
  figures jsonb not null,
  read_at timestamptz not null
);

-- A row here stands until the work of its workflow is done; whatever is overdue is started (again).
create table workflow_tasks (
  workflow_id text primary key,
  workflow_type text not null,
  waba_id text not null,
  event_id text not null,
  argument jsonb not null,
  starts integer not null default 0,
  next_start_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  -- One line for the Temporal UI, where the kind of workflow does not say enough.
  summary text
);
create index workflow_tasks_next_start on workflow_tasks (next_start_at);
-- Orders that wait too long, beside any number of other tasks that wait for Temporal.
create index workflow_tasks_orders on workflow_tasks (created_at) where workflow_type = 'enrichOrder';

-- ---------------------------------------------------------------------------------------------------------------------
-- Sending: outbound messages, their pace, files for them, and requests that are carried out once
-- ---------------------------------------------------------------------------------------------------------------------

create table outbound_messages (
  message_id bigint primary key references messages on delete cascade,
  waba_id text not null references wabas,
  phone_number_id text not null references phone_numbers,
  -- Which of upstream's calls sends it.
  upstream_path text not null default 'messages' check (upstream_path in ('messages', 'marketing_messages')),
  -- Digits of a phone, or a business-scoped user id.
  recipient text not null,
  state text not null default 'queued' check (state in ('queued', 'sending', 'accepted', 'failed', 'unknown')),
  attempts integer not null default 0,
  -- The times that the pace of the recipient and of the number gave it; null until asked for.
  pair_at timestamptz,
  number_at timestamptz,
  -- An attempt that is not over by then is lost.
  sending_until timestamptz,
  -- As upstream answered; messages.upstream_id has it too unless another message had it first.
  upstream_id text,
  upstream_status text,
  -- The WhatsApp id of the recipient, as upstream answered.
  wa_id text,
  error text,
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  -- Files of ours in the message; null: none.
  media_ids uuid[],
  -- Of an order_details message.
  payment_reference text,
  payment_configuration text,
  -- The key that sent it.
  api_key_id bigint
) with (fillfactor = 80);
create index outbound_messages_payment on outbound_messages (waba_id, payment_reference, message_id)
  where payment_reference is not null;
-- Whether another message needs a file that is to be erased.
create index outbound_messages_media on outbound_messages using gin (media_ids) where media_ids is not null;

-- When the next message of a number (recipient '') or to one of its recipients may leave.
create table send_pacing (
  phone_number_id text not null references phone_numbers,
  recipient text not null,
  free_at timestamptz not null,
  primary key (phone_number_id, recipient)
) with (fillfactor = 50);
create index send_pacing_free on send_pacing (free_at);

-- Phones that upstream knows under other digits (Brazil, Mexico), as its responses have shown.
create table phone_aliases (
  waba_id text not null references wabas,
  phone text not null,
  wa_id text not null,
  primary key (waba_id, phone)
);
create index phone_aliases_wa_id on phone_aliases (waba_id, wa_id);

-- uploading: its bytes are on their way, or were lost with the process; deleted: its object is still to be removed.
create table media_uploads (
  id uuid primary key,
  waba_id text not null references wabas,
  state text not null default 'uploading' check (state in ('uploading', 'ready', 'deleted')),
  object_key text not null unique,
  media_type text,
  mime_type text,
  file_name text,
  size_bytes bigint,
  sha256 text,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  -- The key that uploaded it.
  api_key_id bigint
);
create index media_uploads_expiry on media_uploads (expires_at);
create index media_uploads_open on media_uploads (created_at) where state <> 'ready';
create trigger media_uploads_counts_updates after update on media_uploads
  referencing old table as old_files new table as new_files for each statement execute function count_stored_files();
create trigger media_uploads_counts_deletes after delete on media_uploads referencing old table as old_files
  for each statement execute function count_stored_files();

-- What upstream calls a file for one of the numbers. Until uploading_until it is being uploaded.
create table media_upstream_ids (
  media_id uuid not null references media_uploads on delete cascade,
  phone_number_id text not null references phone_numbers,
  upstream_media_id text,
  expires_at timestamptz,
  uploading_until timestamptz,
  primary key (media_id, phone_number_id)
);

create table idempotency_keys (
  waba_id text not null references wabas,
  operation text not null,
  key text not null,
  fingerprint bytea not null,
  -- Set by the transaction that stores the key.
  message_id bigint,
  -- Until then the request that brought the key is taken to be under way.
  held_until timestamptz not null,
  response_status integer,
  response_body text,
  created_at timestamptz not null default now(),
  primary key (waba_id, operation, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);
-- What an erasure of messages takes with them.
create index idempotency_keys_message on idempotency_keys (message_id) where message_id is not null;

-- How many requests each key has made in its window, counted by rate-limiter-flexible (its columns, in its order).
-- Unlogged: counts need not survive a crash of the server, and so cost no write-ahead log; every window is over within
-- a minute anyway.
create unlogged table rate_limits (
  key text primary key,
  points integer not null default 0,
  -- Milliseconds since 1970.
  expire bigint
) with (fillfactor = 50);

-- ---------------------------------------------------------------------------------------------------------------------
-- Users of the portal, and who changed what
-- ---------------------------------------------------------------------------------------------------------------------

-- Several accounts may have one e-mail address.
create table users (
  id bigint generated always as identity primary key,
  email text not null check (email = lower(email)),
  name text not null,
  -- PHC string; null: signs in through the OpenID provider only.
  password_hash text,
  disabled_at timestamptz,
  created_at timestamptz not null default now(),
  last_sign_in_at timestamptz,
  is_operator boolean not null default false,
  -- Who made the link by which the present password was set, and when it was; null: its holder chose it.
  password_link_by text,
  password_link_at timestamptz,
  -- Whether alerts are sent to the address; null: to administrators and operators.
  alert_mail boolean,
  alert_mailed_at timestamptz
);
create index users_email on users (email);

-- The tenants that a user belongs to.
create table memberships (
  user_id bigint not null references users on delete cascade,
  tenant_id bigint not null references tenants on delete cascade,
  role text not null check (role in ('admin', 'member')),
  disabled_at timestamptz,
  created_at timestamptz not null default now(),
  -- Of sessions in this tenant: what the user does elsewhere is not shown there.
  last_sign_in_at timestamptz,
  primary key (user_id, tenant_id)
);
create index memberships_tenant on memberships (tenant_id);

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
  user_agent text,
  -- Where its user is at present; null: at the operator's pages.
  tenant_id bigint references tenants on delete cascade,
  -- Begun with a password that was set through another's link.
  password_link_by text,
  begun_by text not null check (begun_by in ('password', 'oidc', 'invitation', 'set-up link')),
  -- When its user last proved to be there: by password, code or provider.
  proven_at timestamptz not null default now(),
  -- Null: no second factor was given.
  second_factor_at timestamptz
) with (fillfactor = 80);
create index user_sessions_user on user_sessions (user_id);
create index user_sessions_end on user_sessions (least(idle_until, expires_at));

-- Second factors that are in use.
create table user_totp (
  user_id bigint primary key references users on delete cascade,
  secret_sealed text not null,
  created_at timestamptz not null default now(),
  -- The time step of the code that was used last: none works twice.
  last_step bigint not null
);

create table recovery_codes (
  user_id bigint not null references user_totp on delete cascade,
  -- SHA-256 of 80 random bits.
  code_hash bytea not null,
  primary key (user_id, code_hash)
);

-- Changes of an account that its owner should know of.
create table user_notices (
  id bigint generated always as identity primary key,
  user_id bigint not null references users on delete cascade,
  at timestamptz not null default now(),
  kind text not null,
  -- Who did it, and where from.
  by text,
  ip text,
  seen_at timestamptz
);
create index user_notices_user on user_notices (user_id, id);
create index user_notices_at on user_notices (at);

create table invitations (
  -- SHA-256 of the token in the link.
  token_hash bytea primary key,
  id bigint generated always as identity unique,
  email text not null check (email = lower(email)),
  role text check (role in ('operator', 'admin', 'member')),
  tenant_id bigint references tenants on delete cascade,
  -- Set: the link gives this user a new password and creates no user.
  user_id bigint references users on delete cascade,
  invited_by text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  accepted_at timestamptz,
  maker_id bigint references users on delete cascade,
  -- The link went to the address by e-mail; its maker has not seen it.
  mailed boolean not null default false,
  constraint invitations_kind check (
    case when user_id is null then role is not null and (role = 'operator') = (tenant_id is null) else role is null end
  )
);
create index invitations_email on invitations (email);
create index invitations_tenant on invitations (tenant_id);
create index invitations_end on invitations (expires_at);

-- Who a user is at an OpenID provider.
create table user_identities (
  issuer text not null,
  subject text not null,
  user_id bigint not null references users on delete cascade,
  created_at timestamptz not null default now(),
  primary key (issuer, subject),
  -- One person at the provider per user: a recycled e-mail address opens nothing.
  unique (user_id, issuer)
);

-- The salt of an address follows from this: all accounts of an address are tried by one computation.
create table password_salt (
  salt bytea not null,
  is_only boolean primary key default true check (is_only)
);
insert into password_salt (salt) select sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

-- Rows stay as they are until the retention of their tenant. No foreign keys: an entry outlives what it speaks of.
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
  ip text,
  -- Several accounts may have the address of the actor.
  actor_user_id bigint,
  -- Where operators work from is not for tenants, also when the operator is gone.
  by_operator boolean not null default false
);
create index audit_log_tenant on audit_log (tenant_id, id);
-- What concerns a tenant as a whole, such as its users: few entries among many of its WABAs.
create index audit_log_of_tenant on audit_log (tenant_id, id) where waba_id is null;
create index audit_log_waba on audit_log (waba_id, id);
create index audit_log_action on audit_log (action, id);
create index audit_log_actor on audit_log (actor, id);
create index audit_log_request on audit_log (request_id) where request_id is not null;
-- Event ids hold phone numbers. Only entries of early versions have one.
create index audit_log_event_ids on audit_log (waba_id)
  where action = 'delivery.dropped' and detail -> 'eventId' is not null;
create trigger audit_log_rows_stay before update or delete on audit_log
  for each row execute function keep_audit_entry();
create trigger audit_log_stays before truncate on audit_log
  for each statement execute function refuse_audit_change();

-- Each entry's hash over the hash before and its own text, in the order of the commits. Written by a trigger alone.
create table audit_chain (
  position bigint primary key,
  entry_id bigint not null unique,
  hash bytea not null,
  -- The entry that notes that retention removed this one; null: it is there.
  expired_by bigint,
  -- The entry that notes that an erasure took the id of an event out of this one; null: it is as it was written.
  redacted_by bigint
);
create trigger audit_chain_rows_stay before update or delete on audit_chain
  for each row execute function keep_audit_link();
create trigger audit_chain_stays before truncate on audit_chain
  for each statement execute function refuse_audit_change();
create constraint trigger audit_log_chained after insert on audit_log deferrable initially deferred
  for each row execute function chain_audit_entry();
select protect_audit_log();

-- ---------------------------------------------------------------------------------------------------------------------
-- Installation
-- ---------------------------------------------------------------------------------------------------------------------

-- Random secrets that last as long as the installation, sealed: what is derived from them outlives the encryption keys.
create table installation_secrets (
  name text primary key,
  secret_sealed text not null,
  created_at timestamptz not null default now()
);

-- ---------------------------------------------------------------------------------------------------------------------
-- Erasures: what was asked to be erased, and what must not come back
-- ---------------------------------------------------------------------------------------------------------------------

-- No foreign keys: a row outlives what it speaks of, and holds nothing personal once it is done.
create table erasures (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('customer', 'conversation', 'waba', 'tenant', 'user')),
  -- Our id of the subject; of a WABA, upstream's.
  subject_id text not null,
  waba_id text,
  tenant_id bigint,
  state text not null default 'requested' check (state in ('requested', 'running', 'done')),
  -- Without names: "user 3", "API key 7", "operator command".
  requested_by text not null,
  created_at timestamptz not null default now(),
  -- What came later is not erased.
  started_at timestamptz,
  finished_at timestamptz,
  -- Which step is next, and where its next batch begins.
  position integer not null default 0,
  after text,
  -- What the steps look for, such as phone numbers; null once it is done.
  subject_sealed text,
  -- What it waits for at present.
  note text,
  counts jsonb not null default '{}',
  -- How many of each kind other systems did not let go.
  refused jsonb not null default '{}',
  -- The signed text, and its signature.
  report text,
  signature jsonb
);
create unique index erasures_open on erasures (kind, subject_id) where state <> 'done';
create index erasures_waba on erasures (waba_id, id);
create index erasures_tenant on erasures (tenant_id, id);

-- Messages that were erased, by a salted hash of number and upstream id: intake drops what comes of them again.
create table erased_items (
  key bytea primary key,
  erased_at timestamptz not null default now()
);
create index erased_items_age on erased_items (erased_at);

create table erasure_salt (
  salt bytea not null,
  is_only boolean primary key default true check (is_only)
);
insert into erasure_salt (salt) select sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

-- Files that were erased: their URLs say so.
create table erased_files (
  message_id bigint primary key,
  -- Null: the WABA was erased.
  waba_id text,
  object_key text unique,
  erased_at timestamptz not null default now()
);

-- WABAs of which upstream has repeated something erased: the raw bodies since then are gone over.
create table erased_repeats (
  waba_id text primary key,
  since timestamptz not null default now(),
  -- The sweep has begun; false again once intake has noted another repeat: the row then outlives the sweep.
  is_being_swept boolean not null default false,
  -- Where the sweep was cut off.
  swept_day date,
  swept_id bigint
);

-- ---------------------------------------------------------------------------------------------------------------------
-- Alerts: what people have to know about, and how e-mail reports it
-- ---------------------------------------------------------------------------------------------------------------------

-- A row per condition, from its beginning to its end.
create table alerts (
  id uuid primary key,
  kind text not null,
  -- Null: it is about the installation.
  tenant_id bigint references tenants on delete cascade,
  waba_id text references wabas on delete cascade,
  -- What it is about, unique within the kind: the id of an endpoint, an API key or a WABA.
  subject text not null,
  reason text not null,
  details jsonb not null default '{}',
  opened_at timestamptz not null default now(),
  -- At once, and again daily while it lasts.
  told_at timestamptz not null default now(),
  resolved_at timestamptz,
  -- Who resolved it; null: its condition ended.
  resolved_by text,
  -- The end of the condition: one that an operator resolved opens no other alert before.
  over_at timestamptz
);
create unique index alerts_lasting on alerts (kind, subject) where over_at is null;
create index alerts_open on alerts (tenant_id) where resolved_at is null;
create index alerts_tenant on alerts (tenant_id, id);
create index alerts_over on alerts (over_at) where over_at is not null;

-- What upstream last reported about the state of an account, a number or a template. reason null: it is in order.
create table upstream_troubles (
  waba_id text not null references wabas on delete cascade,
  kind text not null check (kind in ('number_restricted', 'account_restricted', 'template_stopped')),
  subject text not null,
  reason text,
  reported_at timestamptz not null,
  -- Null: until a later report ends it.
  until timestamptz,
  primary key (waba_id, kind, subject)
);
create index upstream_troubles_lasting on upstream_troubles (kind, waba_id, subject) where reason is not null;

create table alert_reads (
  user_id bigint not null references users on delete cascade,
  alert_id uuid not null references alerts on delete cascade,
  read_at timestamptz not null default now(),
  primary key (user_id, alert_id)
);
create index alert_reads_alert on alert_reads (alert_id);

-- In how many ten-minute parts of an hour a WABA had events; without hours that had none. From it follows what is usual.
create table waba_hours (
  waba_id text not null references wabas on delete cascade,
  hour timestamptz not null,
  active smallint not null,
  primary key (waba_id, hour)
);
create index waba_hours_hour on waba_hours (hour);

-- E-mails on their way and those of the last days. The content, which can hold one-time links, goes when it is sent.
create table mails (
  id uuid primary key,
  kind text not null check (kind in ('alerts', 'invitation', 'password_link')),
  user_id bigint references users on delete cascade,
  recipient text not null,
  content_sealed text,
  attempts integer not null default 0,
  last_error text,
  created_at timestamptz not null default now(),
  sent_at timestamptz,
  failed_at timestamptz
);
create index mails_age on mails (created_at);
create index mails_failed on mails (failed_at) where failed_at is not null;

-- ---------------------------------------------------------------------------------------------------------------------
-- Housekeeping
-- ---------------------------------------------------------------------------------------------------------------------

create table housekeeping_steps (
  step text primary key,
  -- The step is not begun before then: its last turn is not long ago, or still under way.
  next_at timestamptz not null,
  succeeded_at timestamptz,
  -- Null after a success.
  failing_since timestamptz,
  error text
);

-- Which text of schema.sql and functions.sql this database has: what changed is applied again, or refused.
create table schema_files (
  name text primary key,
  sha256 text not null,
  applied_at timestamptz not null default now()
);

-- Housekeeping makes the partitions of the days that come.
select ensure_partitions((now() at time zone 'utc')::date - 1, (now() at time zone 'utc')::date + 7);
