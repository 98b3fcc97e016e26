#!/bin/sh
# Makes what docker-compose.yml reads and is not there yet: .env, heliograph.env, and one file per secret. Run it again at
# any time: what exists stays as it is.
set -eu
cd "$(dirname "$0")/.."

umask 077
[ -e .env ] || { cp deploy/example.env .env && echo 'made .env'; }
from_env() { sed -n "s/^$1=//p" .env | tail -n 1; }
secrets=${SECRETS_DIR:-$(from_env SECRETS_DIR)}
secrets=${secrets:-secrets}
tls=${TLS_DIR:-$(from_env TLS_DIR)}
tls=${tls:-tls}
mkdir -p "$secrets" "$tls"
# Containers get the files one by one and read them as users of their own, so the folder is what keeps others out.
chmod 700 "$secrets" "$tls"

keep() { # FILE CONTENT
  [ -e "$1" ] || { printf '%s' "$2" > "$1" && echo "made $1"; }
}
keep_readable() { # FILE CONTENT
  keep "$1" "$2"
  chmod 644 "$1"
}
keep_secret() { keep_readable "$secrets/$1" "$2"; } # NAME CONTENT
random() { od -An -tx1 -N "$1" /dev/urandom | tr -d ' \n'; }

[ -e heliograph.env ] || { cp deploy/heliograph.example.env heliograph.env && echo 'made heliograph.env'; }

for name in postgres-password database-password owner-database-password temporal-database-password \
  object-store-root-password object-store-secret-key grafana-password; do
  keep_secret "$name" "$(random 24)"
done
if [ -e "$secrets/database-url" ]; then
  # One role has done everything so far.
  keep_secret owner-database-url "$(cat "$secrets/database-url")"
else
  keep_secret owner-database-url "postgresql://heliograph_owner:$(cat "$secrets/owner-database-password")@postgres:5432/heliograph"
fi
keep_secret database-url "postgresql://heliograph_app:$(cat "$secrets/database-password")@postgres:5432/heliograph"
keep_secret verify-token "$(random 16)"
keep_secret encryption-keys "k1:$(head -c 32 /dev/urandom | base64)"
keep_secret oidc-client-secret ''
keep_secret smtp-url ''
keep_secret webhook-proxy ''
keep_secret app-secrets ''
# Of the proxy, where its certificate comes from files.
keep_readable "$tls/chain.pem" ''
keep_readable "$tls/key.pem" ''

[ -s "$secrets/app-secrets" ] || echo "still to do: put the app secret of the upstream app into $secrets/app-secrets"
grep -q '^HELIOGRAPH_PUBLIC_URL=https://' heliograph.env || echo 'still to do: set HELIOGRAPH_PUBLIC_URL in heliograph.env'
proxy_tls=${PROXY_TLS:-$(from_env PROXY_TLS | tr -d "\"'")}
case ${proxy_tls:-internal} in
internal)
  echo "still to do: PROXY_TLS in .env is ${proxy_tls:-not set, which means internal}: upstream refuses its private certificate; set your e-mail address (Let's Encrypt) or files"
  ;;
*/*)
  for name in chain.pem key.pem; do
    [ -s "$tls/$name" ] || echo "still to do: PROXY_TLS in .env names files: copy yours over $tls/$name, which is empty"
  done
  ;;
esac
