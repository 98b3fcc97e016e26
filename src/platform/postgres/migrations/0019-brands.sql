-- Name, logo and colour of the portal, of the installation and of tenants.

create table brands (
  -- Null: of the installation.
  tenant_id bigint references tenants on delete cascade,
  name text,
  -- Checked: white text on it can be read.
  accent_color text,
  -- A picture of at most 32 KiB, its type by its bytes, and its SHA-256 in hexadecimal digits.
  logo bytea,
  logo_type text,
  logo_hash text,
  unique nulls not distinct (tenant_id)
);
create index brands_logo on brands (logo_hash) where logo_hash is not null;
