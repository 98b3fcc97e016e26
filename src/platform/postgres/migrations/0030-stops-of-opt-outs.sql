-- A resume that comes late ends the stops before it, and none of those after it.

-- When upstream reported stops that no resume has ended, the earliest ones; null: none, or noted by an earlier release.
alter table opt_outs add column if not exists stopped_at timestamptz[];
