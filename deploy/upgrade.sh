#!/bin/sh
# Brings api and worker to the image and the settings that hold now, while requests go on: new processes beside the old
# ones, which stop when the new ones answer.
#
#   sh deploy/upgrade.sh           after `git pull` or a changed setting; the image before stays as heliograph:previous
#   sh deploy/upgrade.sh IMAGE     an image that is there already, such as heliograph:previous for the step back
set -eu
cd "$(dirname "$0")/.."

say() { echo "upgrade: $*"; }
fail() {
  say "$*" >&2
  exit 1
}


wait_for() { # SERVICE CONTAINER...; true when all of them answer
  service=$1
  deadline=$(($(date +%s) + 120))
  shift
  for id; do
    until [ "$(docker inspect --format '{{.State.Health.Status}}' "$id")" = healthy ]; do
      [ "$(docker inspect --format '{{.RestartCount}}' "$id")" -lt 3 ] || return 1
      if [ "$(date +%s)" -ge "$deadline" ]; then
        # Without Temporal a worker is not ready, and takes in and delivers all the same.
        [ "$service" = worker ] && docker exec "$id" node -e \
          "fetch('http://127.0.0.1:8081/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))" || return 1
        say "$service is not ready, perhaps because Temporal is away; going on"
        break
      fi
      sleep 1
    done
  done
}

roll() { # SERVICE
  old=$(docker compose ps --quiet "$1")
  [ -n "$old" ] || return 0
  count=$(echo "$old" | wc -l)
  say "starting $count of $1 beside the old ones"
  docker compose up --detach --no-deps --no-recreate --scale "$1=$((count * 2))" "$1"
  new=$(docker compose ps --quiet "$1" | grep -vxF "$old")
  # shellcheck disable=SC2086 # ids
  if ! wait_for "$1" $new; then
    docker logs --tail 20 "$(echo "$new" | head -n 1)" >&2 || true
    docker rm --force $new > /dev/null
    fail "the new processes of $1 do not answer; the old ones go on"
  fi
  for id in $old; do
    docker stop "$id" > /dev/null
    docker rm "$id" > /dev/null
  done
}

# What a newer version needs and is not there yet.
sh deploy/prepare.sh
if [ $# -gt 0 ]; then
  docker image inspect "$1" > /dev/null || docker pull "$1"
  grep -v '^SERVICE_IMAGE=' .env > .env.new || true
  echo "SERVICE_IMAGE=$1" >> .env.new
  cat .env.new > .env
  rm .env.new
else
  running=$(docker compose ps --quiet api | head -n 1)
  [ -z "$running" ] || docker tag "$(docker inspect --format '{{.Image}}' "$running")" heliograph:previous
  case $(grep '^SERVICE_IMAGE=' .env || true) in
    '' | SERVICE_IMAGE=heliograph:[0-9]*) docker compose build migrate ;;
    SERVICE_IMAGE=heliograph:previous) fail '.env still names heliograph:previous: remove that line first' ;;
    *) docker compose pull migrate ;;
  esac
fi

say 'migrating'
tries=0
until docker compose run --rm --no-deps -T migrate; do
  tries=$((tries + 1))
  [ "$tries" -lt 5 ] || fail 'the schema could not be migrated; nothing else was changed'
  sleep 2
done
roll api
roll worker
# The rest, where something about it changed.
docker compose up --detach
say 'done'
