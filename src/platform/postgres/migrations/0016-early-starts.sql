-- When a workflow with a time is given to Temporal, which starts it at that time. Processes of the release before look at `next_start_at`
-- alone and would have it start at once.

alter table workflow_tasks add give_at timestamptz;
create index workflow_tasks_give on workflow_tasks (give_at) where give_at is not null;
update workflow_tasks set next_start_at = starts_at, give_at = now() where starts_at > now();
