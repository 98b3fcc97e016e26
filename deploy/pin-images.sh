#!/bin/sh
# Writes an override file that pins every image from a registry to the digest that this machine has of it. Images that are
# built here have none; that of the service is named by SERVICE_IMAGE in .env. Pull first: docker compose pull --ignore-buildable
#
#   sh deploy/pin-images.sh > digests.yml      then COMPOSE_FILE=docker-compose.yml:digests.yml in .env
set -eu
cd "$(dirname "$0")/.."

images=$(docker compose config | awk '/^  [a-z]/ { service = $1 } /^    image: / { print service, $2 }' | grep -vE '^(api|worker|migrate): ')
lines=$(echo "$images" | while read -r service image; do
  name=${image%%@*}
  digests=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$image")
  digest=$(echo "$digests" | sed -n "s|^${name%:*}@||p" | head -n 1)
  [ -z "$digest" ] || echo "  $service { image: \"$name@$digest\" }"
done)
[ -n "$lines" ] || { echo 'pin-images: no image here has a digest of a registry' >&2; exit 1; }
printf 'services:\n%s\n' "$lines"
