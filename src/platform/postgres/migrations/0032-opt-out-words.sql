-- Words by which customers stop and resume marketing.

alter table wabas
  add column if not exists opt_out_words text[] not null default '{}',
  add column if not exists opt_in_words text[] not null default '{}';
-- Rows of earlier releases have one of the others.
alter table opt_outs drop constraint if exists opt_outs_source_check;
alter table opt_outs add constraint opt_outs_source_check
  check (source in ('upstream', 'error_131050', 'keyword', 'api', 'portal')) not valid;
