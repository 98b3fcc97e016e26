#!/bin/sh
# Runs a program that takes its secrets from variables only: X_FILE=path becomes X=what the file holds.
set -eu

for name in $(env | sed -n 's/^\([A-Z_]*\)_FILE=\/run\/secrets\/.*/\1/p'); do
  eval "export $name=\$(cat \"\$${name}_FILE\")"
  unset "${name}_FILE"
done
exec "$@"
