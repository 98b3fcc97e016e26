#!/bin/sh
# Brings Temporal's two databases to the schema of this version; harmless when they are there already.
set -eu

for store in temporal visibility; do
  case $store in
    temporal) export SQL_DATABASE=temporal ;;
    visibility) export SQL_DATABASE=temporal_visibility ;;
  esac
  # Writes the version table only where there is none.
  temporal-sql-tool setup-schema --version 0.0
  temporal-sql-tool update-schema --schema-name "postgresql/v12/$store"
done
