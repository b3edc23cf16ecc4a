# The Lambda functions: their size, their start, what an event takes. The floor is the goal, and where something else can
# do the same, a second row has that.
# shellcheck shell=bash

# FUNCTIONS holds both programs for this machine. ZIPS holds what is uploaded, for the processor that is the default.
use_functions() {
  FUNCTIONS=${CATALOG_MIRROR_FUNCTIONS:-} ZIPS=${CATALOG_MIRROR_ZIPS:-}
  if [[ -z $FUNCTIONS ]]; then
    (cd "$ROOT" && cargo build --quiet --profile lambda -p poller -p reader-function)
    FUNCTIONS=$(target_folder)/lambda
  fi
  if [[ -z $ZIPS ]]; then
    ZIPS=$WORK/zips
    "$ROOT/scripts/build" --out "$ZIPS" >/dev/null
  fi
}

# zipped FUNCTION: megabytes that are uploaded.
zipped() { stat -c %s "$ZIPS/$1/bootstrap.zip" | awk '{printf "%.2f", $1 / 1048576}'; }

# play STARTS PROGRAM [EVENT EVENTS [WARM-UP [ANSWER]]] -- VARIABLE=VALUE...: `first-next event peak cpu`, as the Lambda
# service sees it.
play() {
  local arguments=()
  while [[ $1 != -- ]]; do arguments+=("$1"); shift; done
  shift
  env -i PATH="$PATH" HOME="$HOME" "${S3_ENVIRONMENT[@]}" AWS_LAMBDA_FUNCTION_NAME=bench AWS_LAMBDA_FUNCTION_VERSION=1 \
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512 RUST_LOG=warn STORE=s3://bench/mirror "$@" \
    python3 "$LIB/runtime_api.py" "${arguments[0]}" "$(program "${arguments[1]}")" "${arguments[@]:2}"
}
program() { if [[ $1 == */* ]]; then printf '%s' "$1"; else printf '%s' "$FUNCTIONS/$1"; fi; }

# best FIELD RUNS COMMAND...: the smallest of what several runs of `play` print there. Other work on the machine
# only makes things slower.
best() {
  local field=$1 runs=$2 run
  shift 2
  for run in $(seq "$runs"); do RUN=$run "$@"; done | cut -d' ' -f"$field" | sort -n | head -1
}

use_bucket() {
  start_s3 minio tls
  make_bucket bench
  S3_ENVIRONMENT=(AWS_ENDPOINT_URL_S3="$S3_URL" AWS_CA_BUNDLE="$S3_CA" AWS_REGION=us-east-1
    AWS_ACCESS_KEY_ID="$S3_KEY" AWS_SECRET_ACCESS_KEY="$S3_SECRET")
}

# The least that can start and ask: how fast the machine is just now.
bench_start() {
  cat >"$WORK/asks" <<'ASKS'
#!/bin/bash
exec 3<>"/dev/tcp/${AWS_LAMBDA_RUNTIME_API/://}"
printf 'GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\n\r\n' >&3
read -r _ <&3
ASKS
  chmod +x "$WORK/asks"
  STARTED_MS=$(best 1 3 play 20 "$WORK/asks" --)
}

# starts PROGRAM GOAL VARIABLE=VALUE...
starts() {
  local figure
  figure=$(best 1 3 play 20 "$1" -- "${@:3}")
  row "$1, exec to first next" "$figure" ms goal "$2"
  row "$1, exec to first next" "$figure" ms "a script that asks" "$STARTED_MS"
}

# A pointer that is trusted for an hour leaves the reader's own time.
bench_reader() {
  local events=$ROOT/functions/reader-function/tests/events
  "${POLL[@]}" --store s3://bench/mirror --catalog "demo=$PLAIN_REGISTRY/ns/$SMALL:v1" >/dev/null || true
  row "reader, zipped" "$(zipped reader)" MB goal 3.5
  starts reader 8
  row "reader, 304, own time" "$(best 2 3 play 1 reader "$events/url-not-modified.json" 200 -- FRESHNESS=1h)" ms goal 1
  row "reader, 304 with a request to MinIO" "$(best 2 3 play 1 reader "$events/url-not-modified.json" 200 --)" ms
  row "reader, first event of a process" "$(best 2 5 play 1 reader "$events/url-not-modified.json" 1 0 --)" ms
  row "reader, memory after 200 whole catalogs" "$(play 1 reader "$events/url-all-gzip.json" 200 -- | cut -d' ' -f3)" MB goal 45
}

# Into an empty part of the bucket every time, by a function that has just started.
cold_publish() {
  play 1 poller "$WORK/force.json" 1 0 '"published":1' -- STORE="s3://bench/cold-$RUN" METRICS=off \
    CATALOGS="{registries: {plainHttp: ['$PLAIN_REGISTRY']}, catalogs: [{name: c, source: '$PLAIN_REGISTRY/ns/$SMALL:v1'}]}"
}

bench_cold() {
  local what="poller, cold publish of $SMALL to MinIO" floor wall cpu
  echo '{"force": true}' >"$WORK/force.json"
  for RUN in 1 2 3 4 5; do cold_publish; done >"$WORK/cold"
  wall=$(cut -d' ' -f2 "$WORK/cold" | sort -n | head -1) cpu=$(cut -d' ' -f4 "$WORK/cold" | sort -n | head -1)
  floor=$(measure 5 true "$LIB/floor" "http://$PLAIN_REGISTRY" "ns/$SMALL")
  row "$what" "$wall" ms goal 1000
  row "$what" "$wall" ms "curl, gunzip, sha256sum, gzip -6" "$(wall "$floor")"
  row "$what, CPU" "$cpu" ms "the same" "$(cpu "$floor")"
  row "$what, memory" "$(cut -d' ' -f3 "$WORK/cold" | sort -n | tail -1)" MB goal 150
}

# Looking at many catalogs whose registry is far away. The floor asks it for the same manifests, as many at a time.
bench_unchanged() {
  local event=$ROOT/functions/poller/tests/events/schedule.json port far figure floor
  port=$(free_port)
  far=127.0.0.1:$port
  start "$WORK/slow.log" python3 "$LIB/slow_proxy.py" "$port" "${PLAIN_REGISTRY##*:}" 20
  wait_for 5 curl -sf "http://$far/v2/"
  push_folder tiny "$ROOT/tests/catalogs/v1"
  many_sources "$far" >"$WORK/many.yaml"
  figure=$(play 1 poller "$event" 10 5 '"unchanged":200' -- CATALOGS="$(<"$WORK/many.yaml")" STORE=s3://bench/many METRICS=off)
  figure=$(cut -d' ' -f2 <<<"$figure")
  row "poller, 200 unchanged, registry 20 ms away" "$figure" ms goal 3000
  floor=$(measure 5 true curl -sSI --no-progress-meter -o /dev/null --parallel --parallel-max 64 "http://$far/v2/ns/tiny/manifests/v1?[1-200]")
  row "poller, 200 unchanged, registry 20 ms away" "$figure" ms "curl -I of the manifests, 64 at once" "$(wall "$floor")"
}

many_sources() {
  local name
  printf 'registries: {plainHttp: ["%s"]}\ncatalogs:\n' "$1"
  for name in $(seq 200); do printf '  - {name: c%s, source: "%s/ns/tiny:v1"}\n' "$name" "$1"; done
}

load() { row "load of the machine" "$(cut -d' ' -f1 /proc/loadavg)" '' "its processors" "$(nproc)"; }

bench_lambda() {
  use_functions
  use_bucket
  load
  bench_start
  bench_reader
  row "poller, zipped" "$(zipped poller)" MB goal 6
  starts poller 15 CATALOGS='catalogs: []'
  bench_cold
  bench_unchanged
  load
}
