-- Housekeeping empties the table at once. To return its pages, a vacuum would keep every body from being ingested.

alter table usage_changes set (vacuum_truncate = off);
