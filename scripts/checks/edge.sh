# The Worker in workerd, over a local R2: the HTTP contract, answers that equal those of `serve`, its size, its memory, the time of its
# processor, and a bucket that fails.
# shellcheck shell=bash

STORE=$WORK/store DATA=$(data_folder)

# start_both STORE [VARIABLE=VALUE...]: the Worker at URL, and `serve` at SERVED.
start_both() {
  serve "$1"
  SERVED=$URL
  start_worker "$MODULES" "$@"
}

# Each change is a request of its own, which the Worker's memory does not know yet.
faults() {
  local path=catalogs/demo/packages/demo-queue
  start_worker "$MODULES" "$STORE"
  curl -sSf "$URL/test/bucket/fails" >/dev/null
  is "a bucket that fails is 503" "$(status "$URL/$path")" 503
  is "it is logged once, with its cause" "$(grep -c 10043 "$WORKER_LOG")" 1
  is "as a problem" "$(field "$URL/$path" content-type)" application/problem+json
  curl -sSf "$URL/test/bucket/hangs" >/dev/null
  is "a bucket that does not answer is 503 after eight seconds" "$(curl -sS -o /dev/null -w '%{http_code} %{time_total}' "$URL/$path" | cut -c1-5)" "503 8"
  # A client that goes away in the middle takes nothing with it that others wait for.
  curl -sS --max-time 1 "$URL/$path" >/dev/null 2>&1
  curl -sSf "$URL/test/bucket/late" >/dev/null
  is "a slow bucket is waited for" "$(curl -sSf "$URL/$path" | sha256)" "$(curl -sSf "$SERVED/$path" | sha256)"
  curl -sSf "$URL/test/bucket/works" >/dev/null
  is "one that works again answers" "$(status "$URL/catalogs/demo/content-hash")" 200
  curl -sSf "$URL/test/remove/$(shard_keys "$STORE" demo | sed -n 's/^demo-search //p')" >/dev/null
  is "a missing object is 503" "$(status "$URL/catalogs/demo/packages/demo-search")" 503
  is "and others are served" "$(status "$URL/$path")" 200
}

redirects() {
  start_worker "$MODULES" "$STORE" INLINE_MAX=1000 PUBLIC_URL="$SERVED/"
  redirected demo "$(content_hash "$STORE" demo)"
  is "what is no object is sent" "$(status "$URL/catalogs/demo/api/v1/metas?schema=olm.bundle")" 200
}

# many_packages FOLDER: a catalog of 10,000 packages.
many_packages() {
  mkdir -p "$1"
  seq -f '{"schema":"olm.package","name":"package-%05.0f","defaultChannel":"stable","description":"text"}' 10000 >"$1/catalog.json"
}

# cpu: the time of the processor that all threads of workerd took so far, in microseconds. Its R2 and its cache are in it.
cpu() { cat "/proc/$WORKER_PID"/task/*/schedstat | awk '{ sum += $1 } END { print int(sum / 1000) }'; }

# cpu_of COUNT URL [CURL-OPTION...]: microseconds for each of so many requests on one connection.
cpu_of() {
  local before
  before=$(cpu)
  curl -sSf -o /dev/null "${@:3}" "$2?[1-$1]"
  echo $((($(cpu) - before) / $1))
}

# first_of COUNT: microseconds for the first answer about each of so many packages of the full catalog.
first_of() {
  local before
  curl -sS "$URL/catalogs/full/packages" | jq -r ".packages[1:$(($1 + 1))][] | \"url = $URL/catalogs/full/packages/\(.name)\noutput = $WORK/body\"" >"$WORK/asked"
  before=$(cpu)
  curl -sSf --config "$WORK/asked"
  echo $((($(cpu) - before) / $1))
}

# Memory and time on the largest real catalog.
full_catalog() {
  local start path coding asked=() package=catalogs/full/packages/3scale-community-operator
  unpack "$DATA/community-full.tar.zst" "$WORK/full"
  "$CATALOG_MIRROR" poll --store "$WORK/full-store" --catalog "full=dir:$WORK/full/configs" >/dev/null 2>&1
  start_both "$WORK/full-store" FRESHNESS=1h
  # Cloudflare compiles the program when it is deployed. The reads of the bucket, which is emulated here, are no time of the Worker there.
  start=$(cpu_of 1 "$URL/healthz")
  at_most "start of the program, in µs" "$start" 100000
  # It takes twice the time of the start on any machine: a limit in µs would measure the machine.
  at_most "first answer, with its reads of the bucket, in µs" "$(cpu_of 1 "$URL/$package")" $((start * 3))
  at_most "first answer of another package, with one read, in µs" "$(first_of 50)" 20000
  same_answers "$package" catalogs/full/packages catalogs/full/content-hash v2/full/manifests/latest
  # With a condition, so that it comes from the router and not from the edge cache.
  at_most "a package from memory, in µs" "$(cpu_of 1000 "$URL/$package" -H 'If-None-Match: "other"')" 2000
  for path in api/v1/all "api/v1/metas?schema=olm.package" search.json "search?q=kafka" packages; do
    for coding in identity gzip zstd; do
      curl -sSf -o /dev/null -H "Accept-Encoding: $coding" "$URL/catalogs/full/$path" & asked+=("$!")
    done
  done
  wait "${asked[@]}" || not_ok "all routes of the full catalog answer at once"
  at_most "memory of the full catalog" "$(curl -sSf "$URL/test/memory")" $((64 << 20))
}

at_most() { if (($2 <= $3)); then ok "$1: $2 <= $3"; else not_ok "$1" "$2 > $3"; fi; }

use_worker "$WORK/modules"
at_most "size of the Worker, compressed" "$(gzip -9c "$MODULES/edge_bg.wasm" "$MODULES/edge.js" | wc -c)" $((1500 << 10))
is "a catalog is published" "$(outcome "$STORE" "demo=dir:$ROOT/tests/catalogs/v1" --identity)" "published 10"
start_both "$STORE"
contract demo demo-queue
same_answers catalogs.json "" v2/ v2/demo/tags/list v2/demo/manifests/latest nothing \
  catalogs/demo/{status.json,search.json,packages/none,packages/demo-queue/} "catalogs/demo/search?q=queue" "catalogs/demo/api/v1/metas?schema=olm.channel"
is "nothing went wrong" "$(grep -c '"level":"ERROR"' "$WORKER_LOG" || true)" 0
redirects
faults
many_packages "$WORK/many"
is "10,000 packages are published" "$(outcome "$WORK/many-store" "many=dir:$WORK/many")" "published 10"
start_both "$WORK/many-store"
same_answers catalogs/many/packages catalogs/many/packages/package-05000 "catalogs/many/api/v1/metas?schema=olm.package"
at_most "memory with 10,000 packages" "$(curl -sSf "$URL/test/memory")" $((128 << 20))
if [[ -n $DATA ]]; then full_catalog; fi
