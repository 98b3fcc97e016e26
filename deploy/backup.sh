#!/bin/sh
# Copies the database and the files into a new folder, while everything runs. Usage: sh deploy/backup.sh FOLDER
# Not in it: the folder secrets, .env and heliograph.env. Keep copies of those elsewhere; without encryption-keys the
# secrets in the database are lost.
set -eu
cd "$(dirname "$0")/.."

[ $# -eq 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
umask 077
mkdir -p "$1"
[ ! -e "$1/heliograph.dump" ] || { echo "backup: $1 holds one already" >&2; exit 1; }

is_here() { [ -n "$(docker compose ps --quiet "$1" 2> /dev/null)" ]; }

if is_here postgres; then
  docker compose exec -T postgres pg_dump --username postgres --format custom heliograph > "$1/heliograph.dump.part"
  mv "$1/heliograph.dump.part" "$1/heliograph.dump"
else
  echo 'backup: PostgreSQL is not one of these services; back it up by its own means, before the files' >&2
fi
# After the database, so that no row names a file that is not in it.
for store in object-store minio; do
  is_here "$store" || continue
  docker compose exec -T "$store" tar -C /data -cf - . > "$1/$store.tar.part"
  mv "$1/$store.tar.part" "$1/$store.tar"
done
ls -l "$1"
