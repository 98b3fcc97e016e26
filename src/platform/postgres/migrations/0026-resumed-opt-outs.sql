-- A stop that comes late is not taken for the beginning of the one after a resume.

-- The newest resume that upstream reported; null: none, or the row itself is one.
alter table opt_outs add column if not exists resumed_at timestamptz;
