-- When endpoints learn that a customer service window closes; null: 60 minutes before.

alter table webhook_endpoints add window_closing_minutes integer;

create index concurrently webhook_endpoints_windows on webhook_endpoints (waba_id) where 'window.closing' = any (event_types);
