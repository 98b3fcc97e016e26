#!/bin/sh
# Creates the namespace of the service, unless it exists. Search attributes are registered by `migrate` and the worker.
set -eu

host=${TEMPORAL_ADDRESS%:*}
port=${TEMPORAL_ADDRESS##*:}
# The command line resolves names by itself and is less lenient with them than the system's resolver.
ip=$(getent hosts "$host" | awk 'NR == 1 { print $1 }')
export TEMPORAL_ADDRESS="${ip:-$host}:$port"

tries=0
until temporal operator cluster health; do
  tries=$((tries + 1))
  if [ "$tries" -ge 30 ]; then
    echo "Temporal did not become healthy at $TEMPORAL_ADDRESS" >&2
    exit 1
  fi
  sleep 2
done

if temporal operator namespace describe --namespace "$NAMESPACE" > /dev/null 2>&1; then
  echo "namespace $NAMESPACE exists"
else
  temporal operator namespace create --namespace "$NAMESPACE" --retention 168h
fi
