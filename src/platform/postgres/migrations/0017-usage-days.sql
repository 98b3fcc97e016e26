-- Messages per UTC day, number, category, pricing type and country of the customer; an empty text: not reported.

create table usage_days (
  waba_id text not null references wabas,
  day date not null,
  phone_number_id text not null,
  category text not null,
  pricing_type text not null,
  country text not null,
  sent bigint not null,
  delivered bigint not null,
  read bigint not null,
  failed bigint not null,
  billable bigint not null,
  received bigint not null,
  primary key (waba_id, day, phone_number_id, category, pricing_type, country)
);
create index usage_days_day on usage_days (day);
-- What is to be added to usage_days: a row that every body updates would slow intake down while an old snapshot is open.
create table usage_changes (
  id bigint generated always as identity primary key,
  waba_id text not null,
  day date not null,
  phone_number_id text not null,
  category text not null,
  pricing_type text not null,
  country text not null,
  sent bigint not null default 0,
  delivered bigint not null default 0,
  read bigint not null default 0,
  failed bigint not null default 0,
  billable bigint not null default 0,
  received bigint not null default 0
);
-- What upstream reported that it charges, by UTC day.
create table usage_costs (
  waba_id text not null references wabas,
  day date not null,
  phone_number_id text not null,
  category text not null,
  pricing_type text not null,
  country text not null,
  volume bigint not null,
  -- Null: upstream reported none.
  cost numeric,
  currency text,
  reported_at timestamptz not null,
  primary key (waba_id, day, phone_number_id, category, pricing_type, country)
);
create index usage_costs_day on usage_costs (day);
alter table wabas add costs_asked_at timestamptz;
create trigger message_statuses_count before insert on message_statuses for each row execute function count_status();
create trigger messages_count_received after insert on messages for each row
  when (new.direction = 'inbound' and new.origin is null) execute function count_received();
