# The reader in the Lambda emulator, over a bucket: the HTTP contract through its function URL, redirects, recorded events,
# and what it asks S3 for.
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

# asked PATTERN: the requests that S3 has had so far.
asked() { grep -c "$1" "$WORK/moto.log" || true; }

# A warm pointer is asked for under the condition that it has changed, and nothing else is asked for.
revalidation() {
  local tag all unchanged
  tag=$(field "$URL/catalogs/demo/content-hash" etag)
  all=$(asked '"[A-Z]* /mirror') unchanged=$(asked '"GET /mirror/reader/catalogs/demo/current.json[^"]*" 304')
  is "a client that has it gets 304" "$(status "$URL/catalogs/demo/content-hash" -H "If-None-Match: $tag")" 304
  is "for one request to S3" "$(($(asked '"[A-Z]* /mirror') - all))" 1
  is "which is answered without a body" \
    "$(($(asked '"GET /mirror/reader/catalogs/demo/current.json[^"]*" 304') - unchanged))" 1
}

# A body above INLINE_MAX is redirected to the stored object, which has the same content.
presigned() {
  local coding all=/catalogs/demo/api/v1/all
  start_reader INLINE_MAX=1000
  for coding in identity gzip zstd; do
    is "$coding above the limit is redirected" "$(status "$URL$all" -H "Accept-Encoding: $coding")" 307
    is "to where its bytes are" "$(fetch "$coding" "$URL$all" -L | sha256)" "$HASH"
  done
  matches "by a signed URL" "$(field "$URL$all" location)" "^$MOTO_URL/mirror/reader/$(pointer | jq -r .all.identity.key)\\?.*X-Amz-Signature="
  is "that is repeated for a minute" "$(field "$URL$all" cache-control)" 'public, max-age=60'
  is "HEAD as GET" "$(status "$URL$all" -I)" 307
  is "what the client has is not redirected" "$(status "$URL$all" -H "If-None-Match: $(field "$URL$all" etag)")" 304
  is "small answers are not either" "$(status "$URL/catalogs/demo/content-hash")" 200
}

public() {
  start_reader INLINE_MAX=1000 PUBLIC_URL=https://cdn.example/m/
  is "with a public URL that is where it is sent" "$(field "$URL/catalogs/demo/all.json" location -H 'Accept-Encoding: gzip')" \
    "https://cdn.example/m/$(pointer | jq -r .all.gzip.key)"
}

# What the services really send, one file each.
events() {
  local name expected answer
  while read -r name expected; do
    answer=$(invoke reader "$ROOT/functions/reader/tests/events/$name.json" 2>"$WORK/invoke.err") || true
    is "event $name is answered with $expected" "$(jq -r .statusCode <<<"$answer" 2>/dev/null)" "$expected"
  done <<END
url-all 200
url-all-gzip 200
url-all-head 200
url-not-modified 304
url-range 206
url-metas 200
url-metas-encoded 200
url-metas-not-encoded 200
url-unknown-parameter 400
url-package-encoded 200
url-package-odd 404
url-post 405
url-through-cdn 200
api-all 200
api-stage 200
api-decoded 404
END
  answer=$(invoke reader "$ROOT/functions/reader/tests/events/url-all.json")
  is "a body comes out of its base64 whole" "$(jq -r .body <<<"$answer" | base64 -d | sha256)" "$HASH"
}

refusal() {
  local code=0
  start_emulator
  start_function reader reader STORE=/no/bucket CACHE_MIB=much
  wait "$FUNCTION_PID" || code=$?
  is "a bad environment ends the function" "$code" 1
  matches "with everything that is wrong" "$(cat "$FUNCTION_LOG")" 'STORE.*CACHE_MIB'
}

publish
start_reader
LOG=$FUNCTION_LOG
contract demo "$(pointer | jq -r .contentHash)" "$(pointer | jq .packages)" demo-queue
revalidation
events
presigned
public
refusal
matches "a request is one line of log" "$(grep -c '"message":"answered request"' "$LOG")" '^[0-9]{2,}$'
is "and nothing went wrong" "$(grep -c '"level":"ERROR"' "$LOG" || true)" 0
