-- How many messages a second upstream allows a number; null: it did not say.

alter table phone_numbers add upstream_per_second integer check (upstream_per_second > 0);
