-- Message templates of each WABA as upstream listed and reported them.

create table message_templates (
  waba_id text not null references wabas,
  template_id text not null,
  name text not null,
  -- As upstream lists it: en_US.
  language text not null,
  status text,
  category text,
  quality text,
  rejected_reason text,
  -- As upstream listed it, JSON; null: not listed since it was made or changed.
  content text,
  -- When upstream said so: reports come in any order.
  status_at timestamptz,
  category_at timestamptz,
  quality_at timestamptz,
  content_at timestamptz,
  primary key (waba_id, template_id)
);
create index message_templates_name on message_templates (waba_id, name, language, template_id);
alter table wabas add templates_listed_at timestamptz;
