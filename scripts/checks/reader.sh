# The reader in the Lambda emulator, over a bucket: the HTTP contract through its function URL, an event, and redirects.
# shellcheck shell=bash

PLACE=s3://mirror/reader

publish() {
  start_moto
  use_s3 "$MOTO_URL"
  make_bucket mirror
  "$CATALOG_MIRROR" poll --store "$PLACE" --catalog "demo=dir:$ROOT/tests/catalogs/v1" --identity >/dev/null 2>&1
}

# start_reader [VARIABLE=VALUE...]: URL is the function's afterwards.
start_reader() {
  start_emulator
  start_function reader reader STORE="$PLACE" AWS_ENDPOINT_URL_S3="$AWS_ENDPOINT_URL_S3" AWS_REGION=us-east-1 \
    AWS_ACCESS_KEY_ID="$S3_KEY" AWS_SECRET_ACCESS_KEY="$S3_SECRET" "$@"
  URL=$FUNCTION_URL
  wait_for 30 curl -sf --max-time 5 "$URL/healthz"
}

pointer() { s3_object "$PLACE" catalogs/demo/current.json; }

# A body above INLINE_MAX is redirected to the stored object, which has the same content.
presigned() {
  local coding all=/catalogs/demo/api/v1/all
  start_reader INLINE_MAX=1000
  for coding in identity gzip zstd; do
    is "$coding above the limit is redirected" "$(status "$URL$all" -H "Accept-Encoding: $coding")" 307
    is "to where its bytes are" "$(fetch "$coding" "$URL$all" -L | sha256)" "$HASH"
  done
  matches "by a signed URL" "$(field "$URL$all" location)" "^$MOTO_URL/mirror/reader/$(pointer | jq -r .all.identity.key)\\?.*X-Amz-Signature="
}

# An event as the service sends it; functions/reader/tests/it/events.rs has all recorded ones.
event() {
  local answer
  answer=$(invoke reader "$ROOT/functions/reader/tests/events/url-all.json")
  is "a body comes out of its base64 whole" "$(jq -r .body <<<"$answer" | base64 -d | sha256)" "$HASH"
}

publish
start_reader
LOG=$FUNCTION_LOG
contract demo "$(pointer | jq -r .contentHash)" "$(pointer | jq .packages)" demo-queue
event
presigned
matches "a request is one line of log" "$(grep -c '"message":"answered request"' "$LOG")" '^[0-9]{2,}$'
is "and nothing went wrong" "$(grep -c '"level":"ERROR"' "$LOG" || true)" 0
