-- Counts of a tenant at which operators are alerted: an array of metric, period and threshold.

alter table tenants add usage_alerts jsonb not null default '[]';
