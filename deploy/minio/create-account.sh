#!/bin/sh
# The service's account, which may do everything with its own bucket and nothing else.
set -eu

bucket=${HELIOGRAPH_OBJECT_STORE_BUCKET:-heliograph-media}
mc alias set --quiet store "$OBJECT_STORE_URL" root "$MINIO_ROOT_PASSWORD"
mc mb --quiet --ignore-existing "store/$bucket"
cat > /tmp/policy.json << POLICY
{
  "Version": "2012-10-17",
  "Statement": [{ "Effect": "Allow", "Action": "s3:*", "Resource": ["arn:aws:s3:::$bucket", "arn:aws:s3:::$bucket/*"] }]
}
POLICY
mc admin policy create store heliograph /tmp/policy.json
mc admin user add store "$HELIOGRAPH_OBJECT_STORE_ACCESS_KEY" "$OBJECT_STORE_SECRET_KEY"
mc admin policy detach store heliograph --user "$HELIOGRAPH_OBJECT_STORE_ACCESS_KEY" > /dev/null 2>&1 || true
mc admin policy attach store heliograph --user "$HELIOGRAPH_OBJECT_STORE_ACCESS_KEY"
