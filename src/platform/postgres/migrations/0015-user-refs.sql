-- What the operator's program calls users. No statement rewrites a table.

alter table memberships add ref text;
-- The membership gets it when the invitation is accepted.
alter table invitations add ref text;
create unique index memberships_ref on memberships (tenant_id, ref) where ref is not null;
