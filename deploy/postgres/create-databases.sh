#!/bin/bash
# Runs once, when the database volume is empty: a role without privileges for each user of the server.
set -euo pipefail

create() {
  local role=$1 password
  password=$(cat "/run/secrets/$2")
  shift 2
  psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --set role="$role" --set password="$password" <<< \
    "create role :\"role\" login password :'password';"
  for database in "$@"; do
    psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --set role="$role" --set name="$database" <<< \
      "create database :\"name\" owner :\"role\"; revoke connect on database :\"name\" from public;"
  done
}

create heliograph database-password heliograph
create temporal temporal-database-password temporal temporal_visibility
