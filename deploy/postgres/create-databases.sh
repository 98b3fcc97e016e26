#!/bin/bash
# Runs once, when the database volume is empty: roles of least privilege for Heliograph, and one for Temporal.
set -euo pipefail

as_superuser() { psql --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" "$@"; }
set_password() { # ROLE SECRET
  as_superuser --set role="$1" --set password="$(cat "/run/secrets/$2")" <<< "alter role :\"role\" login password :'password';"
}
create_database() { # OWNER NAME
  as_superuser --set role="$1" --set name="$2" <<< \
    "create database :\"name\" owner :\"role\"; revoke connect on database :\"name\" from public;"
}

create_database "$POSTGRES_USER" heliograph
as_superuser --dbname heliograph --file /scripts/roles.sql
set_password heliograph_app database-password
set_password heliograph_owner owner-database-password

as_superuser <<< 'create role temporal;'
set_password temporal temporal-database-password
create_database temporal temporal
create_database temporal temporal_visibility
