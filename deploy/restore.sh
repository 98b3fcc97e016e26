#!/bin/sh
# Puts the database and the files of a backup in place of those that are there. Usage: sh deploy/restore.sh FOLDER
# The folder secrets, .env and heliograph.env have to be those of the backup's time, or newer ones with the old encryption
# key in them. Temporal starts empty: open work is started again from the database. Nothing is served meanwhile.
set -eu
cd "$(dirname "$0")/.."

[ $# -eq 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
[ -e "$1/heliograph.dump" ] || { echo "restore: there is no $1/heliograph.dump" >&2; exit 1; }

as_postgres() { docker compose exec -T postgres "$@"; }
new_database() { # OWNER NAME
  as_postgres psql --quiet --set ON_ERROR_STOP=1 --username postgres << SQL
drop database if exists "$2" with (force);
create database "$2" owner "$1";
revoke connect on database "$2" from public;
SQL
}

docker compose stop api worker temporal
docker compose up --detach --wait postgres
new_database postgres heliograph
as_postgres pg_restore --username postgres --dbname heliograph --no-owner --no-privileges --exit-on-error < "$1/heliograph.dump"
as_postgres psql --quiet --set ON_ERROR_STOP=1 --username postgres --dbname heliograph < deploy/postgres/roles.sql
# Where one role does everything (docs/operators/connections.md), it goes on so.
as_postgres psql --quiet --set ON_ERROR_STOP=1 --username postgres << 'SQL'
select 'grant heliograph_owner to heliograph' from pg_roles where rolname = 'heliograph' \gexec
SQL
if [ -n "$(docker compose ps --all --quiet temporal)" ]; then
  new_database temporal temporal
  new_database temporal temporal_visibility
fi
for store in object-store minio; do
  [ -e "$1/$store.tar" ] || continue
  docker compose up --detach --wait "$store"
  # Its process goes on with what it finds.
  docker compose exec -T "$store" sh -c 'find /data -mindepth 1 -delete; tar -C /data -xf -' < "$1/$store.tar"
  docker compose restart "$store"
done
docker compose up --detach
