# The Lambda functions: their size, their start, what an event takes. The floor is the goal, as nothing else does the same.
# shellcheck shell=bash

# goal WHAT FIGURE UNIT GOAL
goal() { row "$1" "$2 $3" goal "$4 $3" "$2" "$4"; }

use_functions() {
  FUNCTIONS=${CATALOG_MIRROR_FUNCTIONS:-}
  if [[ -z $FUNCTIONS ]]; then
    (cd "$ROOT" && cargo build --quiet --profile lambda -p poller -p reader)
    FUNCTIONS=$(cd "$ROOT" && cargo metadata --format-version 1 --no-deps | jq -r .target_directory)/lambda
  fi
}

# zipped PROGRAM: megabytes of it in a zip, which deflates as gzip does.
zipped() { gzip -9c "$FUNCTIONS/$1" | wc -c | awk '{printf "%.2f", $1 / 1048576}'; }

# play STARTS PROGRAM [EVENT EVENTS] -- VARIABLE=VALUE...: `first-next event peak`, as the Lambda service sees it.
play() {
  local arguments=()
  while [[ $1 != -- ]]; do arguments+=("$1"); shift; done
  shift
  env -i PATH="$PATH" HOME="$HOME" "${S3_ENVIRONMENT[@]}" AWS_LAMBDA_FUNCTION_NAME=bench AWS_LAMBDA_FUNCTION_VERSION=1 \
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512 RUST_LOG=warn STORE=s3://bench/mirror "$@" \
    python3 "$HERE/lib/runtime_api.py" "${arguments[0]}" "$FUNCTIONS/${arguments[1]}" "${arguments[@]:2}"
}

use_bucket() {
  start_minio
  use_s3 "$MINIO_URL" "$MINIO_CA"
  make_bucket bench
  S3_ENVIRONMENT=(AWS_ENDPOINT_URL_S3="$MINIO_URL" AWS_CA_BUNDLE="$MINIO_CA" AWS_REGION=us-east-1
    AWS_ACCESS_KEY_ID="$S3_KEY" AWS_SECRET_ACCESS_KEY="$S3_SECRET")
}

# A pointer that is trusted for an hour leaves the reader's own time.
bench_reader() {
  local events=$ROOT/functions/reader/tests/events played
  "${POLL[@]}" --store s3://bench/mirror --catalog "demo=$PLAIN_REGISTRY/ns/$SMALL:v1" >/dev/null || true
  goal "reader, zipped" "$(zipped reader)" MB 3.5
  played=$(play 20 reader "$events/url-not-modified.json" 200 -- FRESHNESS=1h)
  goal "reader, exec to first next" "$(cut -d' ' -f1 <<<"$played")" ms 8
  goal "reader, 304, own time" "$(cut -d' ' -f2 <<<"$played")" ms 1
  played=$(play 1 reader "$events/url-not-modified.json" 200 --)
  row "reader, 304 with a look at MinIO" "$(cut -d' ' -f2 <<<"$played") ms" "" "" "" ""
  played=$(play 1 reader "$events/url-all-gzip.json" 200 --)
  goal "reader, memory after 200 whole catalogs" "$(cut -d' ' -f3 <<<"$played")" MB 45
}

bench_poller() {
  local event=$ROOT/functions/poller/tests/events/schedule.json played cold port
  goal "poller, zipped" "$(zipped poller)" MB 6
  goal "poller, exec to first next" "$(play 20 poller -- CATALOGS='catalogs: []' | cut -d' ' -f1)" ms 15
  cold=$(measure 5 true "${POLL[@]}" --force --store s3://bench/cold --catalog "c=$PLAIN_REGISTRY/ns/$SMALL:v1")
  goal "publish of $SMALL to MinIO, wall" "$(ms "$(wall "$cold")" | cut -d' ' -f1)" ms 1000
  goal "publish of $SMALL to MinIO, memory" "$(peak "$cold")" MB 150
  port=$(free_port)
  start "$WORK/slow.log" python3 "$HERE/lib/slow_proxy.py" "$port" "${PLAIN_REGISTRY##*:}" 20
  wait_for 5 curl -sf "http://127.0.0.1:$port/v2/"
  many_catalogs "127.0.0.1:$port" >"$WORK/many.yaml"
  played=$(play 1 poller "$event" 5 -- CATALOGS="$(<"$WORK/many.yaml")" STORE=s3://bench/many METRICS=off)
  goal "poller, 200 unchanged, registry 20 ms away" "$(cut -d' ' -f2 <<<"$played")" ms 3000
}

# All of one small image: what is measured is looking at it.
many_catalogs() {
  local name
  copy_image "oci:$LAYOUT:step-000" "docker://$PLAIN_REGISTRY/ns/tiny:v1"
  printf 'registries: {plainHttp: ["%s"]}\ncatalogs:\n' "$1"
  for name in $(seq 200); do printf '  - {name: c%s, source: "%s/ns/tiny:v1"}\n' "$name" "$1"; done
}

bench_lambda() {
  use_functions
  use_bucket
  bench_reader
  bench_poller
}
