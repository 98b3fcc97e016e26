-- Customers who want no more messages, from upstream, from a refused message, or from the tenant.

create table opt_outs (
  id bigint generated always as identity primary key,
  waba_id text not null references wabas,
  -- Null: every number of the WABA.
  phone_number_id text,
  -- Null: the customer was erased, and is known by the salted hashes of former ids alone.
  contact_id bigint,
  kept_keys bytea[],
  scope text not null check (scope in ('marketing', 'all')),
  source text not null check (source in ('upstream', 'error_131050', 'api', 'portal')),
  -- Only upstream ends what upstream reported.
  is_upstream boolean not null generated always as (source in ('upstream', 'error_131050')) stored,
  -- False: upstream reported the end, which an older report that comes later does not undo.
  is_stop boolean not null default true,
  reason text,
  since timestamptz not null,
  -- When the newest report was made: reports come in any order.
  reported_at timestamptz not null,
  check ((contact_id is null) = (kept_keys is not null))
);
create unique index opt_outs_contact on opt_outs (contact_id, coalesce(phone_number_id, ''), is_upstream)
  where contact_id is not null;
create index opt_outs_waba on opt_outs (waba_id, id);
create index opt_outs_kept on opt_outs using gin (kept_keys) where kept_keys is not null;
