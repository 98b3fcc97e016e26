#!/bin/sh
# Schema, server and namespace in one container. The namespace needs a server that answers. MAKE_DATABASES: where nothing
# else makes them, by a role that may.
set -eu

if [ -n "${MAKE_DATABASES:-}" ]; then
  for name in temporal temporal_visibility; do
    temporal-sql-tool --database "$name" create-database || echo "$name is there, or the next step says why not"
  done
fi
/bin/sh /scripts/set-up-schema.sh
until /bin/sh /scripts/create-namespace.sh; do sleep 5; done &
exec /etc/temporal/entrypoint.sh
