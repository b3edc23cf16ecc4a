# The reader in the Lambda emulator, over a bucket: the HTTP contract through its function URL, an event, and redirects.
# shellcheck shell=bash

PLACE=s3://mirror/reader

pointer() { s3_object "$PLACE" catalogs/demo/current.json; }

start_s3 moto
make_bucket mirror
"$CATALOG_MIRROR" poll --store "$PLACE" --catalog "demo=dir:$ROOT/tests/catalogs/v1" --identity >/dev/null 2>&1
serve "$PLACE"
SERVED=$URL HASH=$(pointer | jq -r .contentHash)
start_reader "$PLACE"
LOG=$FUNCTION_LOG
contract demo demo-queue
# An event as the service sends it; functions/reader-function/tests/it/events.rs has all recorded ones.
is "a body comes out of its base64 whole" \
  "$(invoke reader "$ROOT/functions/reader-function/tests/events/url-all.json" | jq -r .body | base64 -d | sha256)" "$HASH"
start_reader "$PLACE" INLINE_MAX=1000
redirected demo "$HASH"
matches "by a signed URL" "$(field "$URL/catalogs/demo/api/v1/all" location)" "^$S3_URL/mirror/reader/$(pointer | jq -r .all.identity.key)\\?.*X-Amz-Signature="
matches "a request is one line of log" "$(grep -c '"message":"answered request"' "$LOG")" '^[0-9]{2,}$'
is "and nothing went wrong" "$(grep -c '"level":"ERROR"' "$LOG" || true)" 0
