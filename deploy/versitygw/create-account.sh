#!/bin/sh
# The service's account and its bucket, unless they are there. Its secret is brought to that of the file.
set -eu

export ADMIN_ENDPOINT_URL="$OBJECT_STORE_URL" ADMIN_ACCESS_KEY_ID=root
account=$HELIOGRAPH_OBJECT_STORE_ACCESS_KEY
bucket=${HELIOGRAPH_OBJECT_STORE_BUCKET:-heliograph-media}

if versitygw admin list-users | awk '{ print $1 }' | grep -qxF "$account"; then
  versitygw admin update-user --access "$account" --secret "$OBJECT_STORE_SECRET_KEY"
else
  versitygw admin create-user --access "$account" --secret "$OBJECT_STORE_SECRET_KEY" --role user
fi
if versitygw admin list-buckets | awk '{ print $1 }' | grep -qxF "$bucket"; then
  echo "bucket $bucket exists"
else
  versitygw admin create-bucket --owner "$account" --bucket "$bucket"
fi
