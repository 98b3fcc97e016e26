#!/bin/sh
# Puts the database and the files of a backup in place of those that are there, mends what differs between them and
# Temporal (heliograph-server reconcile), and then starts everything; on a new machine too. Nothing is served meanwhile.
#
#   sh deploy/restore.sh [--empty-temporal] FOLDER
#
# The folder secrets, .env and heliograph.env have to be those of the backup's time, or newer ones with the old encryption
# key in them. Temporal keeps what it has, for it knows what went out since the backup; --empty-temporal throws that away.
set -eu
cd "$(dirname "$0")/.."

empty_temporal=no
[ "${1:-}" != --empty-temporal ] || { empty_temporal=yes; shift; }
[ $# -eq 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ -e "$1/heliograph.dump" ] || { echo "restore: there is no $1/heliograph.dump" >&2; exit 1; }

say() { echo "restore: $*"; }
services=$(docker compose config --services)
is_ours() { echo "$services" | grep -qx "$1"; }
run_once() { docker compose run --rm -T "$@" < /dev/null; }
as_postgres() { docker compose exec -T postgres "$@"; }
has_database() {
  [ "$(as_postgres psql --username postgres --tuples-only --no-align --command "select 1 from pg_database where datname = '$1'" < /dev/null)" = 1 ]
}
new_database() { # OWNER NAME
  as_postgres psql --quiet --set ON_ERROR_STOP=1 --username postgres << SQL
drop database if exists "$2" with (force);
create database "$2" owner "$1";
revoke connect on database "$2" from public;
SQL
}

docker compose stop api worker
docker compose up --detach --wait postgres

say 'the database'
new_database postgres heliograph
as_postgres pg_restore --username postgres --dbname heliograph --no-owner --no-privileges --exit-on-error < "$1/heliograph.dump"
as_postgres psql --quiet --set ON_ERROR_STOP=1 --username postgres --dbname heliograph < deploy/postgres/roles.sql
# Where one role does everything (docs/operators/connections.md), it goes on so.
as_postgres psql --quiet --set ON_ERROR_STOP=1 --username postgres << 'SQL'
select 'grant heliograph_owner to heliograph' from pg_roles where rolname = 'heliograph' \gexec
SQL

if is_ours temporal; then
  say 'Temporal'
  [ "$empty_temporal" = no ] || docker compose stop temporal
  for name in temporal temporal_visibility; do
    [ "$empty_temporal" = no ] && has_database "$name" || new_database temporal "$name"
  done
  run_once temporal-namespace
fi

for store in object-store minio; do
  is_ours "$store" || continue
  if [ -e "$1/$store.tar" ]; then
    say 'the files'
    docker compose up --detach --wait "$store"
    # Its process goes on with what it finds.
    docker compose exec -T "$store" sh -c 'find /data -mindepth 1 -delete; tar -C /data -xf -' < "$1/$store.tar"
    docker compose restart "$store"
  fi
  run_once "$store-account"
done

run_once migrate
say 'what differs between them; this reads every file once'
# Ends with 1 also for files that no row names, which may stay.
report=$(run_once --no-deps worker node src/main.ts reconcile --fix --rewound) || true
echo "$report"
case $report in *'NOT FINISHED'*) report= ;; esac
case $report in
  *'is left to do.'*) ;;
  *)
    say 'api and worker do not run, for messages might go out twice. Mend what is named above, then:' >&2
    echo '  docker compose run --rm worker node src/main.ts reconcile --fix --rewound && docker compose up --detach' >&2
    exit 1
    ;;
esac
docker compose up --detach
say 'done'
